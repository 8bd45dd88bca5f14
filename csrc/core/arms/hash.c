/* hash: open addressing. The key times the golden ratio chooses a slot, what collides stands in the next free one; at most half of the
 * slots are taken. Against table-compact: no pattern of registered keys is bad by itself, and each lookup waits for a multiplication. */
#include <stdlib.h>

#include "compact.h"

typedef struct hashed {
  dl_compact table;
  uint32_t shift;
} hashed;

DL_INLINE size_t place_of(uint32_t key, uint32_t shift) {
  return (uint16_t)(key * 40503u) >> shift;
}

DL_INLINE dl_result dispatch(const hashed *state, const dl_packet *packet, uint32_t *probes) {
  const int32_t key = packet->key;
  size_t at = place_of(packet->key, state->shift);
  for (;; at = (at + 1) & state->table.mask) {
    const dl_compact_slot *s = &state->table.slots[at];
    if (DL_LIKELY(s->key == key)) return dl_compact_call(&state->table, s, packet, probes);
    if (s->key == DL_COMPACT_EMPTY) return DL_UNMATCHED;
  }
}

#define DL_ARM_STATE hashed
#include "arm_loop.inc"

static void destroy(void *opaque) {
  hashed *state = opaque;
  dl_compact_free(&state->table);
  free(state);
}

static void fill(hashed *state, const dl_key_index *index) {
  for (size_t i = 0; i <= state->table.mask; ++i) state->table.slots[i] = (dl_compact_slot){.key = DL_COMPACT_EMPTY};
  for (size_t i = 0; i < index->key_count; ++i) {
    size_t at = place_of(index->entries[i].key, state->shift);
    while (state->table.slots[at].key != DL_COMPACT_EMPTY) at = (at + 1) & state->table.mask;
    state->table.slots[at] = dl_compact_slot_of(&index->entries[i]);
  }
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  dl_key_index index;
  const dl_status status = dl_key_index_build(setup->set, &index);
  if (status != DL_OK) return status;
  uint32_t bits = 1;
  while (((size_t)1 << bits) < 2 * index.key_count) ++bits;
  const size_t size = (size_t)1 << bits;
  hashed *state = calloc(1, sizeof *state);
  dl_compact_slot *slots = malloc(size * sizeof *slots);
  if (state == NULL || slots == NULL) {
    free(state);
    free(slots);
    dl_key_index_free(&index);
    return DL_NO_MEMORY;
  }
  *state = (hashed){{slots, size - 1, index.candidates}, 16 - bits};
  fill(state, &index);
  *out = (dl_prepared){state, destroy, &loops, size * sizeof *slots + index.candidate_count * sizeof(dl_handler *), NULL};
  index.candidates = NULL; /* now the state's */
  dl_key_index_free(&index);
  return DL_OK;
}

extern const dl_arm dl_arm_hash;
const dl_arm dl_arm_hash = {
    .name = "hash",
    .family = "table",
    .guarantee = "first match in registration order",
    .description = "a hash table with open addressing, at most half full",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
