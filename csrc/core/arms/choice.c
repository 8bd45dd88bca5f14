/* Building the table that the mechanism arms select by. */
#include "choice.h"

#include <stdlib.h>
#include <string.h>

#include "closed.h"

#define SMALLEST 1024u
#define LARGEST 65536u

/* Enters the first handler of every key; false when two keys share a slot. */
static bool fill(dl_choice *slots, size_t size, const dl_handler_set *set) {
  for (size_t i = 0; i < size; ++i) slots[i] = (dl_choice){.key = (uint16_t)~i};
  for (size_t i = 0; i < set->count; ++i) {
    dl_handler *h = set->list[i];
    dl_choice *slot = &slots[h->key & (size - 1)];
    if (slot->target != NULL && slot->key == h->key) continue;
    if (slot->target != NULL) return false;
    *slot = (dl_choice){h, h->key, (uint16_t)h->index};
  }
  return true;
}

static dl_status build(const dl_handler_set *set, dl_choices *out) {
  for (size_t size = SMALLEST; size <= LARGEST; size *= 2) {
    dl_choice *slots = aligned_alloc(DL_CACHE_LINE, size * sizeof *slots);
    if (slots == NULL) return DL_NO_MEMORY;
    if (fill(slots, size, set)) {
      *out = (dl_choices){slots, size - 1};
      return DL_OK;
    }
    free(slots);
  }
  return DL_NOT_ALLOWED; /* not reached: 65536 slots hold every key in its own */
}

void dl_mechanism_destroy(void *opaque) {
  dl_mechanism *mechanism = opaque;
  free(mechanism->choices.slots);
  free(mechanism->entries);
  free(mechanism);
}

/* Targets become entries. */
static bool add_entries(dl_mechanism *mechanism, size_t entry_size) {
  const size_t bytes = (mechanism->set->count * entry_size + DL_CACHE_LINE - 1) / DL_CACHE_LINE * DL_CACHE_LINE;
  char *entries = aligned_alloc(DL_CACHE_LINE, bytes);
  if (entries == NULL) return false;
  memset(entries, 0, bytes);
  mechanism->entries = entries;
  mechanism->entry_size = entry_size;
  for (size_t i = 0; i <= mechanism->choices.mask; ++i) {
    dl_choice *slot = &mechanism->choices.slots[i];
    if (slot->target != NULL) slot->target = entries + slot->index * entry_size;
  }
  return true;
}

dl_status dl_mechanism_prepare(const dl_arm_setup *setup, size_t entry_size, const dl_loops *loops, dl_prepared *out) {
  for (size_t i = 0; i < setup->set->count; ++i) {
    if (setup->set->handlers[i].mask == 0) continue;
    out->why = "a mechanism arm selects by the key alone and cannot honour residual predicates: use residual=0";
    return DL_NOT_ALLOWED;
  }
  dl_mechanism *mechanism = calloc(1, sizeof *mechanism);
  if (mechanism == NULL) return DL_NO_MEMORY;
  mechanism->set = setup->set;
  dl_status status = build(setup->set, &mechanism->choices);
  if (status == DL_OK && entry_size > 0 && !add_entries(mechanism, entry_size)) status = DL_NO_MEMORY;
  if (status != DL_OK) {
    dl_mechanism_destroy(mechanism);
    return status;
  }
  const size_t table = (mechanism->choices.mask + 1) * sizeof(dl_choice);
  *out = (dl_prepared){mechanism, dl_mechanism_destroy, loops, table + setup->set->count * entry_size, NULL};
  return DL_OK;
}

/* A handler whose code is not the stamped one came from outside: no case of a closed set is its. */
static const char *refusal(const dl_handler_set *set) {
  for (uint32_t i = 0; i < set->count; ++i)
    if (set->handlers[i].process != set->stamp->process[i]) return DL_CLOSED_REFUSES;
  return set->count <= DL_CLOSED ? NULL : "the set of handlers is closed: it was built over the first 128";
}

dl_status dl_named_prepare(const dl_arm_setup *setup, const dl_named_loops *named, dl_prepared *out) {
  for (; named->stamp != NULL; ++named)
    if (named->stamp == setup->set->stamp) return dl_mechanism_prepare(setup, 0, named->loops, out);
  out->why = "calls handlers by name, and was built for the tiny and fat bodies only";
  return DL_NOT_ALLOWED;
}

dl_status dl_closed_prepare(const dl_arm_setup *setup, const dl_named_loops *named, dl_prepared *out) {
  out->why = refusal(setup->set);
  return out->why == NULL ? dl_named_prepare(setup, named, out) : DL_NOT_ALLOWED;
}
