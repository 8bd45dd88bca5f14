/* erasure: the table's entry holds object and function: one load leads to the call, the object comes beside it. */
#include "choice.h"

typedef struct entry {
  const dl_handler *object;
  dl_process_fn process;
} entry;

DL_INLINE dl_result dispatch(const dl_mechanism *arm, const dl_packet *packet, uint32_t *probes) {
  const dl_choice *choice = dl_choose(&arm->choices, packet);
  (void)probes;
  if (choice == NULL) return DL_UNMATCHED;
  const entry *e = choice->target;
  return e->process(e->object, packet);
}

#define DL_ARM_STATE dl_mechanism
#include "arm_loop.inc"

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  const dl_status status = dl_mechanism_prepare(setup, sizeof(entry), &loops, out);
  if (status != DL_OK) return status;
  for (uint32_t i = 0; i < setup->set->count; ++i) {
    const dl_handler *object = setup->set->objects[i];
    *(entry *)dl_mechanism_entry(out, i) = (entry){object, object->process};
  }
  return DL_OK;
}

extern const dl_arm dl_arm_erasure;
const dl_arm dl_arm_erasure = {
    .name = "erasure",
    .family = "mechanism",
    .guarantee = "first match in registration order",
    .description = "type erasure, {object, function} in the table's entry: one load, then the call",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
