/* The compact table: low bits of the key choose a slot, the slot holds the key and is verified.
 *
 * Two registered keys with equal low bits: the table grows, up to DL_COMPACT_LARGEST slots, until every key stands in its own place;
 * what still collides then stands in the next free slot, and a lookup walks there. A walk therefore passes only slots of keys that
 * agree in their low 13 bits or stand beside such, and stays short whatever the keys are. */
#ifndef DL_ARMS_COMPACT_H
#define DL_ARMS_COMPACT_H

#include "table.h"

#define DL_COMPACT_EMPTY (-1)

typedef struct dl_compact_slot {
  int32_t key;    /* DL_COMPACT_EMPTY, or the key that owns this slot */
  uint32_t begin; /* of the candidates; the number of `only` where there is one */
  dl_handler *only;
  union {
    dl_process_fn process; /* of `only`: the call waits for one load less than through the handler */
    size_t count;          /* of candidates from `begin`, when there is no `only` */
  };
} dl_compact_slot;

_Static_assert(sizeof(dl_compact_slot) == 24, "the published slot size");

typedef struct dl_compact {
  dl_compact_slot *slots;
  size_t mask;
  dl_handler **candidates;
} dl_compact;

/* What a slot of a key holds, here and in the other tables of keys. */
DL_INLINE dl_compact_slot dl_compact_slot_of(const dl_key_entry *e) {
  dl_compact_slot s = {.key = e->key, .begin = e->begin, .only = e->only};
  if (e->only == NULL) {
    s.count = e->count;
  } else {
    s.begin = e->only->index;
    s.process = e->only->process;
  }
  return s;
}

/* The slot that a key owns, or NULL. */
DL_INLINE const dl_compact_slot *dl_compact_find(const dl_compact *table, int32_t key) {
  size_t at = (size_t)key & table->mask;
  const dl_compact_slot *s = &table->slots[at];
  while (__builtin_expect(s->key != key, 0)) {
    if (s->key == DL_COMPACT_EMPTY) return NULL;
    at = (at + 1) & table->mask;
    s = &table->slots[at];
  }
  return s;
}

DL_INLINE dl_result dl_compact_call(const dl_compact *table, const dl_compact_slot *s, const dl_packet *packet,
                                    uint32_t *probes) {
  if (DL_LIKELY(s->only != NULL)) return s->process(s->only, packet);
  return dl_candidates_dispatch(table->candidates + s->begin, s->count, packet, probes);
}

DL_INLINE dl_result dl_compact_dispatch(const dl_compact *table, const dl_packet *packet, uint32_t *probes) {
  const dl_compact_slot *s = dl_compact_find(table, packet->key);
  return __builtin_expect(s == NULL, 0) ? DL_UNMATCHED : dl_compact_call(table, s, packet, probes);
}

/* Builds the table over a set's list. bytes: what a selection may read. Freed by dl_compact_free(). */
dl_status dl_compact_build(const dl_handler_set *set, dl_compact *out, size_t *bytes);
void dl_compact_free(dl_compact *table);

#endif
