/* The linear search that three arms share: ask each handler of a list until one accepts. */
#ifndef DL_ARMS_LIST_H
#define DL_ARMS_LIST_H

#include "arm.h"

typedef struct dl_list {
  dl_handler **handlers;
  size_t count;
} dl_list;

DL_INLINE dl_result dl_list_dispatch(const dl_list *list, const dl_packet *packet, uint32_t *probes) {
  for (size_t i = 0; i < list->count; ++i) {
    const dl_handler *h = list->handlers[i];
    dl_probe(probes);
    if (h->matches(h, packet)) return h->process(h, packet);
  }
  return DL_UNMATCHED;
}

/* A list of its own in one allocation, a copy of the set's; NULL without memory. Freed by free(). */
dl_list *dl_list_copy(const dl_handler_set *set);

#endif
