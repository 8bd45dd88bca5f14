/* cache-last-scan: the last key and a small cache by flow, in front of the brief's loop. */
#include <stdlib.h>

#include "list.h"
#include "table.h"

DL_INLINE const dl_handler *behind(dl_list *const *list, const dl_packet *packet, uint32_t *probes) {
  for (size_t i = 0; i < (*list)->count; ++i) {
    const dl_handler *h = (*list)->handlers[i];
    dl_probe(probes);
    if (h->matches(h, packet)) return h;
  }
  return NULL;
}

typedef dl_list *owned_list;
#define DL_BEHIND_STATE owned_list
#include "cache_last.inc"

static void destroy(void *opaque) {
  cached *state = opaque;
  free(state->arm);
  free(state->memory);
  free(state);
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  cached *state = calloc(1, sizeof *state);
  if (state == NULL) return DL_NO_MEMORY;
  state->arm = dl_list_copy(setup->set);
  state->memory = remember(setup->set);
  if (state->arm == NULL || state->memory == NULL) {
    destroy(state);
    return DL_NO_MEMORY;
  }
  *out = (dl_prepared){state, destroy, &loops, state->arm->count * sizeof(dl_handler *) + sizeof *state->memory, NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_cache_last_scan;
const dl_arm dl_arm_cache_last_scan = {
    .name = "cache-last-scan",
    .family = "scan",
    .guarantee = "first match in registration order",
    .description = "the last key, then 64 flows, remembered in front of the brief's loop",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
