/* What the table arms share: for each key, who may answer for it, in first-match order. */
#ifndef DL_ARMS_TABLE_H
#define DL_ARMS_TABLE_H

#include "arm.h"

/* The handlers of one key. When the first is plain (its key alone decides) it is `only` and nothing is asked. */
typedef struct dl_key_entry {
  uint16_t key;
  dl_handler *only;
  uint32_t begin; /* range of candidates that must still be asked, in list order */
  uint16_t count;
} dl_key_entry;

typedef struct dl_key_index {
  size_t key_count;
  dl_key_entry *entries;
  size_t candidate_count;
  dl_handler **candidates;
} dl_key_index;

/* Groups a set's list by key. The caller frees with dl_key_index_free(). */
dl_status dl_key_index_build(const dl_handler_set *set, dl_key_index *out);
void dl_key_index_free(dl_key_index *index);

/* The short loop behind a key with residual predicates. */
DL_INLINE dl_result dl_candidates_dispatch(dl_handler *const *candidates, size_t count, const dl_packet *packet,
                                           uint32_t *probes) {
  for (size_t i = 0; i < count; ++i) {
    const dl_handler *h = candidates[i];
    dl_probe(probes);
    if (h->matches(h, packet)) return h->process(h, packet);
  }
  return DL_UNMATCHED;
}

#endif
