/* virtual: the object's vtable pointer, then the function in the vtable: two loads, the second waiting for the first. */
#include "choice.h"

DL_INLINE dl_result dispatch(const dl_mechanism *arm, const dl_packet *packet, uint32_t *probes) {
  const dl_choice *choice = dl_choose(&arm->choices, packet);
  (void)probes;
  if (choice == NULL) return DL_UNMATCHED;
  const dl_handler *object = choice->target;
  return object->vtable->process(object, packet);
}

#define DL_ARM_STATE dl_mechanism
#include "arm_loop.inc"

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  return dl_mechanism_prepare(setup, 0, &loops, out);
}

extern const dl_arm dl_arm_virtual;
const dl_arm dl_arm_virtual = {
    .name = "virtual",
    .family = "mechanism",
    .guarantee = "first match in registration order",
    .description = "a call through the vtable that the object points to: two dependent loads",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
