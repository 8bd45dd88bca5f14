/* binary-search: sorted keys, halved until one is left. The steps are the same for every packet, and each chooses by a conditional
 * move: no branch depends on the key until it is compared in the end. */
#include <stdlib.h>

#include "compact.h"

typedef struct sorted {
  uint16_t *keys; /* ascending */
  size_t count;
  dl_compact calls; /* slots in the same order, and the candidates */
} sorted;

DL_INLINE dl_result dispatch(const sorted *state, const dl_packet *packet, uint32_t *probes) {
  const uint16_t key = packet->key;
  size_t at = 0;
  for (size_t left = state->count; left > 1;) {
    const size_t half = left / 2;
    at += (state->keys[at + half] <= key) * half;
    left -= half;
  }
  if (state->keys[at] != key) return DL_UNMATCHED;
  return dl_compact_call(&state->calls, &state->calls.slots[at], packet, probes);
}

#define DL_ARM_STATE sorted
#include "arm_loop.inc"

static void destroy(void *opaque) {
  sorted *state = opaque;
  free(state->keys);
  dl_compact_free(&state->calls);
  free(state);
}

static int by_key(const void *a, const void *b) {
  return (int)((const dl_key_entry *)a)->key - (int)((const dl_key_entry *)b)->key;
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  dl_key_index index;
  const dl_status status = dl_key_index_build(setup->set, &index);
  if (status != DL_OK) return status;
  const size_t n = index.key_count;
  sorted *state = calloc(1, sizeof *state);
  uint16_t *keys = malloc(n * sizeof *keys);
  dl_compact_slot *slots = malloc(n * sizeof *slots);
  if (state == NULL || keys == NULL || slots == NULL) {
    free(state);
    free(keys);
    free(slots);
    dl_key_index_free(&index);
    return DL_NO_MEMORY;
  }
  qsort(index.entries, n, sizeof *index.entries, by_key);
  for (size_t i = 0; i < n; ++i) {
    keys[i] = index.entries[i].key;
    slots[i] = dl_compact_slot_of(&index.entries[i]);
  }
  *state = (sorted){keys, n, {slots, 0, index.candidates}};
  index.candidates = NULL; /* now the state's */
  const size_t bytes = n * (sizeof *keys + sizeof *slots) + index.candidate_count * sizeof(dl_handler *);
  *out = (dl_prepared){state, destroy, &loops, bytes, NULL};
  dl_key_index_free(&index);
  return DL_OK;
}

extern const dl_arm dl_arm_binary_search;
const dl_arm dl_arm_binary_search = {
    .name = "binary-search",
    .family = "table",
    .guarantee = "first match in registration order",
    .description = "sorted keys, halved without branches",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
