/* Grouping a handler list by key, first match first. */
#include "table.h"

#include <stdlib.h>

static dl_key_entry *find(dl_key_index *index, uint16_t key) {
  for (size_t i = 0; i < index->key_count; ++i)
    if (index->entries[i].key == key) return &index->entries[i];
  return NULL;
}

/* Collects the candidates of `first`'s key from its place in the list on; a plain one ends it, since it always accepts. */
static void collect(const dl_handler_set *set, size_t at, dl_key_index *index) {
  dl_handler *first = set->list[at];
  dl_key_entry *entry = &index->entries[index->key_count++];
  *entry = (dl_key_entry){.key = first->key, .begin = (uint32_t)index->candidate_count};
  if (first->mask == 0) {
    entry->only = first;
    return;
  }
  for (size_t i = at; i < set->count; ++i) {
    dl_handler *h = set->list[i];
    if (h->key != first->key) continue;
    index->candidates[index->candidate_count++] = h;
    ++entry->count;
    if (h->mask == 0) return;
  }
}

dl_status dl_key_index_build(const dl_handler_set *set, dl_key_index *out) {
  *out = (dl_key_index){0};
  out->entries = calloc(set->count, sizeof *out->entries);
  out->candidates = calloc(set->count, sizeof *out->candidates);
  if (out->entries == NULL || out->candidates == NULL) {
    dl_key_index_free(out);
    return DL_NO_MEMORY;
  }
  for (size_t i = 0; i < set->count; ++i)
    if (find(out, set->list[i]->key) == NULL) collect(set, i, out);
  return DL_OK;
}

void dl_key_index_free(dl_key_index *index) {
  free(index->entries);
  free(index->candidates);
  *index = (dl_key_index){0};
}
