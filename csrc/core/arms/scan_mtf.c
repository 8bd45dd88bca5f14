/* scan-mtf: a list that organises itself. Each hit moves its handler one place towards the front, so the order follows the
 * traffic without anybody counting. A handler never passes one that it overlaps with: that would change the answer. */
#include <stdlib.h>

#include "list.h"

DL_INLINE dl_result dispatch(const dl_list *list, const dl_packet *packet, uint32_t *probes) {
  for (size_t i = 0; i < list->count; ++i) {
    dl_handler *h = list->handlers[i];
    dl_probe(probes);
    if (!h->matches(h, packet)) continue;
    if (i > 0) {
      dl_handler *before = list->handlers[i - 1];
      if (!(h->overlaps && before->overlaps && h->key == before->key)) {
        list->handlers[i - 1] = h;
        list->handlers[i] = before;
      }
    }
    return h->process(h, packet);
  }
  return DL_UNMATCHED;
}

#define DL_ARM_STATE dl_list
#include "arm_loop.inc"

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  dl_list *list = dl_list_copy(setup->set);
  if (list == NULL) return DL_NO_MEMORY;
  *out = (dl_prepared){list, free, &loops, list->count * sizeof(dl_handler *), NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_scan_mtf;
const dl_arm dl_arm_scan_mtf = {
    .name = "scan-mtf",
    .family = "scan",
    .guarantee = "first match; handlers that overlap keep their order",
    .description = "the loop over a list in which each hit moves one place to the front",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
