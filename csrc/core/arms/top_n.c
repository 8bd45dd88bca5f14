/* top-n: the keys of the four busiest handlers are compared first, each with a call of its own behind it, whose target the processor then
 * never guesses wrong; the compact table serves the rest. Only a handler that its key alone decides for can be among the four. */
#include <stdlib.h>

#include "compact.h"

#define TOP 4

typedef struct favourite {
  int32_t key; /* DL_COMPACT_EMPTY: there are fewer than TOP */
  const dl_handler *handler;
  dl_process_fn process;
} favourite;

typedef struct top_n {
  dl_compact table;
  favourite top[TOP];
} top_n;

#define TRY(i) \
  if (state->top[i].key == key) return state->top[i].process(state->top[i].handler, packet);

DL_INLINE dl_result dispatch(const top_n *state, const dl_packet *packet, uint32_t *probes) {
  const int32_t key = packet->key;
  TRY(0) TRY(1) TRY(2) TRY(3)
  return dl_compact_dispatch(&state->table, packet, probes);
}

#define DL_ARM_STATE top_n
#include "arm_loop.inc"

static void destroy(void *opaque) {
  top_n *state = opaque;
  dl_compact_free(&state->table);
  free(state);
}

/* The busiest of those not yet taken; NULL when none is left. */
static const dl_handler *busiest(const dl_arm_setup *setup, const dl_compact *table, const bool *taken) {
  const dl_handler *found = NULL;
  for (size_t i = 0; i <= table->mask; ++i) {
    const dl_handler *h = table->slots[i].key == DL_COMPACT_EMPTY ? NULL : table->slots[i].only;
    if (h == NULL || taken[h->index]) continue;
    if (found == NULL || setup->frequency[h->index] > setup->frequency[found->index]) found = h;
  }
  return found;
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  bool taken[DL_MAX_HANDLERS] = {false};
  size_t bytes = 0;
  top_n *state = calloc(1, sizeof *state);
  if (state == NULL) return DL_NO_MEMORY;
  const dl_status status = dl_compact_build(setup->set, &state->table, &bytes);
  if (status != DL_OK) {
    free(state);
    return status;
  }
  for (size_t i = 0; i < TOP; ++i) {
    const dl_handler *h = setup->frequency == NULL ? NULL : busiest(setup, &state->table, taken);
    state->top[i] = (favourite){h == NULL ? DL_COMPACT_EMPTY : h->key, h, h == NULL ? NULL : h->process};
    if (h != NULL) taken[h->index] = true;
  }
  *out = (dl_prepared){state, destroy, &loops, bytes + sizeof state->top, NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_top_n;
const dl_arm dl_arm_top_n = {
    .name = "top-n",
    .family = "table",
    .guarantee = "first match in registration order",
    .description = "direct compares for the 4 busiest handlers of the traffic it is measured on, then the compact table",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
