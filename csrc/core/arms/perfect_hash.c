/* perfect-hash: no two registered keys share a slot, so that nothing walks: a hash chooses a bucket, the bucket's displacement and a
 * second hash the slot (hash and displace). Buckets are placed by size, the largest first, each with the first displacement that leaves
 * all its keys a free slot. Where a size leaves one without, another multiplier and then twice the slots are tried; at 65536 slots the
 * second hash is a bijection of the keys, and displacement 0 fits every bucket. */
#include <stdlib.h>
#include <string.h>

#include "compact.h"

#define MOST_BITS 16u
#define TRIES 16u

typedef struct perfect {
  dl_compact table;
  uint16_t *displacement; /* by bucket */
  uint32_t bucket_shift, shift;
  uint32_t multiplier;    /* odd */
} perfect;

DL_INLINE size_t bucket_of(const perfect *p, uint32_t key) {
  return (uint16_t)(key * 40503u) >> p->bucket_shift;
}

DL_INLINE size_t slot_of(const perfect *p, uint32_t key) {
  return ((uint16_t)(key * p->multiplier) >> p->shift) ^ p->displacement[bucket_of(p, key)];
}

DL_INLINE dl_result dispatch(const perfect *state, const dl_packet *packet, uint32_t *probes) {
  const dl_compact_slot *s = &state->table.slots[slot_of(state, packet->key)];
  if (s->key != packet->key) return DL_UNMATCHED;
  return dl_compact_call(&state->table, s, packet, probes);
}

#define DL_ARM_STATE perfect
#include "arm_loop.inc"

static void destroy(void *opaque) {
  perfect *state = opaque;
  dl_compact_free(&state->table);
  free(state->displacement);
  free(state);
}

/* Puts keys into free slots, or takes back what it has put and says false. */
static bool put(perfect *p, const dl_key_entry *const *members, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    dl_compact_slot *s = &p->table.slots[slot_of(p, members[i]->key)];
    if (s->key == DL_COMPACT_EMPTY) {
      *s = dl_compact_slot_of(members[i]);
      continue;
    }
    while (i-- > 0) p->table.slots[slot_of(p, members[i]->key)].key = DL_COMPACT_EMPTY;
    return false;
  }
  return true;
}

static bool displace(perfect *p, const dl_key_index *index, size_t bucket) {
  const dl_key_entry *members[DL_MAX_HANDLERS];
  size_t count = 0;
  for (size_t i = 0; i < index->key_count; ++i)
    if (bucket_of(p, index->entries[i].key) == bucket) members[count++] = &index->entries[i];
  for (size_t d = 0; d <= p->table.mask; ++d) {
    p->displacement[bucket] = (uint16_t)d;
    if (put(p, members, count)) return true;
  }
  return false;
}

static bool place_all(perfect *p, const dl_key_index *index) {
  const size_t buckets = (size_t)1 << (16 - p->bucket_shift);
  size_t sizes[DL_MAX_HANDLERS] = {0}, largest = 0;
  for (size_t i = 0; i < index->key_count; ++i) {
    const size_t size = ++sizes[bucket_of(p, index->entries[i].key)];
    if (size > largest) largest = size;
  }
  for (size_t i = 0; i <= p->table.mask; ++i) p->table.slots[i] = (dl_compact_slot){.key = DL_COMPACT_EMPTY};
  memset(p->displacement, 0, buckets * sizeof *p->displacement);
  for (size_t size = largest; size > 0; --size)
    for (size_t b = 0; b < buckets; ++b)
      if (sizes[b] == size && !displace(p, index, b)) return false;
  return true;
}

static dl_status build(perfect *p, const dl_key_index *index) {
  uint32_t bits = 1, bucket_bits = 1;
  while (((size_t)1 << bits) < index->key_count + index->key_count / 4) ++bits;
  while (((size_t)4 << bucket_bits) < index->key_count) ++bucket_bits; /* four keys or fewer to a bucket */
  p->bucket_shift = 16 - bucket_bits;
  p->displacement = malloc(((size_t)1 << bucket_bits) * sizeof *p->displacement);
  if (p->displacement == NULL) return DL_NO_MEMORY;
  for (; bits <= MOST_BITS; ++bits) {
    p->table.slots = malloc(((size_t)1 << bits) * sizeof *p->table.slots);
    if (p->table.slots == NULL) return DL_NO_MEMORY;
    p->table.mask = ((size_t)1 << bits) - 1;
    p->shift = 16 - bits;
    for (uint32_t t = 0; t < TRIES; ++t) {
      p->multiplier = 2 * (t * 7919u + 24571u) + 1;
      if (place_all(p, index)) return DL_OK;
    }
    free(p->table.slots);
    p->table.slots = NULL;
  }
  return DL_NOT_ALLOWED; /* not reached */
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  dl_key_index index;
  dl_status status = dl_key_index_build(setup->set, &index);
  if (status != DL_OK) return status;
  perfect *state = calloc(1, sizeof *state);
  status = state == NULL ? DL_NO_MEMORY : build(state, &index);
  if (status == DL_OK) {
    state->table.candidates = index.candidates;
    index.candidates = NULL; /* now the state's */
    const size_t buckets = (size_t)1 << (16 - state->bucket_shift);
    const size_t bytes = (state->table.mask + 1) * sizeof(dl_compact_slot) + buckets * sizeof(uint16_t);
    *out = (dl_prepared){state, destroy, &loops, bytes + index.candidate_count * sizeof(dl_handler *), NULL};
  } else if (state != NULL) {
    destroy(state);
  }
  dl_key_index_free(&index);
  return status;
}

extern const dl_arm dl_arm_perfect_hash;
const dl_arm dl_arm_perfect_hash = {
    .name = "perfect-hash",
    .family = "table",
    .guarantee = "first match in registration order",
    .description = "hash and displace: every registered key in a slot of its own, four fifths full where that can be found",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
