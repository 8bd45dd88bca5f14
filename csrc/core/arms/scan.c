/* scan: the brief's loop. Ask every handler in registration order; the first that accepts runs. */
#include <stdlib.h>

#include "list.h"

DL_INLINE dl_result dispatch(const dl_list *list, const dl_packet *packet, uint32_t *probes) {
  return dl_list_dispatch(list, packet, probes);
}

#define DL_ARM_STATE dl_list
#include "arm_loop.inc"

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  dl_list *list = dl_list_copy(setup->set);
  if (list == NULL) return DL_NO_MEMORY;
  *out = (dl_prepared){list, free, &loops, list->count * sizeof(dl_handler *), NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_scan;
const dl_arm dl_arm_scan = {
    .name = "scan",
    .family = "scan",
    .guarantee = "first match in registration order",
    .description = "the brief's loop: asks each handler in turn",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
