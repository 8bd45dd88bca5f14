/* cache-last: the last key and a small cache by flow, in front of the compact table. */
#include <stdlib.h>

#include "compact.h"

DL_INLINE const dl_handler *behind(const dl_compact *table, const dl_packet *packet, uint32_t *probes) {
  const dl_compact_slot *s = dl_compact_find(table, packet->key);
  if (s == NULL) return NULL;
  if (DL_LIKELY(s->only != NULL)) return s->only;
  for (size_t i = 0; i < s->count; ++i) {
    const dl_handler *h = table->candidates[s->begin + i];
    dl_probe(probes);
    if (h->matches(h, packet)) return h;
  }
  return NULL;
}

#define DL_BEHIND_STATE dl_compact
#include "cache_last.inc"

static void destroy(void *opaque) {
  cached *state = opaque;
  dl_compact_free(&state->arm);
  free(state->memory);
  free(state);
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  size_t bytes = 0;
  cached *state = calloc(1, sizeof *state);
  if (state == NULL) return DL_NO_MEMORY;
  state->memory = remember(setup->set);
  const dl_status status = state->memory == NULL ? DL_NO_MEMORY : dl_compact_build(setup->set, &state->arm, &bytes);
  if (status != DL_OK) {
    free(state->memory);
    free(state);
    return status;
  }
  *out = (dl_prepared){state, destroy, &loops, bytes + sizeof *state->memory, NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_cache_last;
const dl_arm dl_arm_cache_last = {
    .name = "cache-last",
    .family = "table",
    .guarantee = "first match in registration order",
    .description = "the last key, then 64 flows, remembered in front of the compact table",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
