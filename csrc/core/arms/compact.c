/* Building the compact table. */
#include "compact.h"

#include <stdlib.h>

#define SMALLEST 1024u
#define LARGEST 8192u

/* Fills a table of `size` slots; says how many keys could not stand in their own place. */
static size_t fill(dl_compact_slot *slots, size_t size, const dl_key_index *index) {
  size_t displaced = 0;
  for (size_t i = 0; i < size; ++i) slots[i] = (dl_compact_slot){.key = DL_COMPACT_EMPTY};
  for (size_t i = 0; i < index->key_count; ++i) {
    const dl_key_entry *e = &index->entries[i];
    size_t at = e->key & (size - 1);
    displaced += slots[at].key != DL_COMPACT_EMPTY;
    while (slots[at].key != DL_COMPACT_EMPTY) at = (at + 1) & (size - 1);
    slots[at] = dl_compact_slot_of(e);
  }
  return displaced;
}

static dl_compact_slot *build(const dl_key_index *index, size_t *size) {
  for (*size = SMALLEST;; *size *= 2) {
    dl_compact_slot *slots = malloc(*size * sizeof *slots);
    if (slots == NULL || fill(slots, *size, index) == 0 || *size == LARGEST) return slots;
    free(slots);
  }
}

dl_status dl_compact_build(const dl_handler_set *set, dl_compact *out, size_t *bytes) {
  dl_key_index index;
  const dl_status status = dl_key_index_build(set, &index);
  if (status != DL_OK) return status;
  size_t size = 0;
  dl_compact_slot *slots = build(&index, &size);
  if (slots == NULL) {
    dl_key_index_free(&index);
    return DL_NO_MEMORY;
  }
  *out = (dl_compact){slots, size - 1, index.candidates};
  *bytes = size * sizeof(dl_compact_slot) + index.candidate_count * sizeof(dl_handler *);
  index.candidates = NULL; /* now the table's */
  dl_key_index_free(&index);
  return DL_OK;
}

void dl_compact_free(dl_compact *table) {
  free(table->slots);
  free(table->candidates);
}
