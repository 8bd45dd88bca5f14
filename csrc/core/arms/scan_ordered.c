/* scan-ordered: the same loop over a list sorted once by how often each handler is hit.
 *
 * Handlers that overlap may not pass each other, because their order is behaviour: the places that they take together in the
 * sorted list are dealt out to them again in registration order. */
#include <stdlib.h>

#include "list.h"

DL_INLINE dl_result dispatch(const dl_list *list, const dl_packet *packet, uint32_t *probes) {
  return dl_list_dispatch(list, packet, probes);
}

#define DL_ARM_STATE dl_list
#include "arm_loop.inc"

/* Insertion sort: stable, and the lists have at most 512 entries. */
static void sort_by_frequency(dl_list *list, const uint64_t *frequency) {
  for (size_t i = 1; i < list->count; ++i) {
    dl_handler *h = list->handlers[i];
    size_t at = i;
    for (; at > 0 && frequency[list->handlers[at - 1]->index] < frequency[h->index]; --at)
      list->handlers[at] = list->handlers[at - 1];
    list->handlers[at] = h;
  }
}

static bool bound_together(const dl_handler *a, const dl_handler *b) {
  return a->overlaps && b->overlaps && a->key == b->key;
}

static void restore_order_of_overlapping(dl_list *list, const dl_handler_set *set) {
  for (size_t first = 0; first < list->count; ++first) {
    const dl_handler *owner = list->handlers[first];
    if (!owner->overlaps) continue;
    size_t place = 0;
    for (size_t i = 0; i < set->count; ++i) { /* in registration order */
      if (!bound_together(set->list[i], owner)) continue;
      while (!bound_together(list->handlers[place], owner)) ++place;
      list->handlers[place++] = set->list[i];
    }
  }
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  dl_list *list = dl_list_copy(setup->set);
  if (list == NULL) return DL_NO_MEMORY;
  if (setup->frequency != NULL) sort_by_frequency(list, setup->frequency);
  restore_order_of_overlapping(list, setup->set);
  *out = (dl_prepared){list, free, &loops, list->count * sizeof(dl_handler *), NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_scan_ordered;
const dl_arm dl_arm_scan_ordered = {
    .name = "scan-ordered",
    .family = "scan",
    .guarantee = "first match; handlers that overlap keep their order",
    .description = "the loop over a list sorted by the true frequencies of the traffic it is measured on",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
