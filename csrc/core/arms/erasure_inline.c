/* erasure-inline: the object itself lies in the table's entry, and with it state of up to one cache line: the small-buffer
 * optimisation. Larger state stays where it is, as in every library that has such a buffer. */
#include "choice.h"

typedef struct entry {
  dl_handler object; /* object.process is the function, object.state points to `state` or to the heap */
  uint64_t state[DL_CACHE_LINE / sizeof(uint64_t)];
} entry;

DL_INLINE dl_result dispatch(const dl_mechanism *arm, const dl_packet *packet, uint32_t *probes) {
  const dl_choice *choice = dl_choose(&arm->choices, packet);
  (void)probes;
  if (choice == NULL) return DL_UNMATCHED;
  const dl_handler *object = choice->target;
  return object->process(object, packet);
}

#define DL_ARM_STATE dl_mechanism
#include "arm_loop.inc"

/* Words of an object's state where it moves into the entry, else 0. */
static size_t moving(const dl_handler_set *set, const dl_handler *object) {
  if (object->index >= set->stamped) return 0; /* its state is not ours to move */
  if (object->state == &object->own) return 1;
  return set->state <= sizeof(((entry *)0)->state) ? set->state / sizeof(uint64_t) : 0;
}

/* What was added in the entries is added to the objects: others may have changed them meanwhile. */
static void give_back(void *opaque) {
  dl_mechanism *arm = opaque;
  const entry *entries = arm->entries;
  for (uint32_t i = 0; i < arm->set->count; ++i) {
    uint64_t *state = arm->set->objects[i]->state;
    for (size_t w = 0; w < moving(arm->set, arm->set->objects[i]); ++w) state[w] += entries[i].state[w];
  }
  dl_mechanism_destroy(arm);
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  const dl_status status = dl_mechanism_prepare(setup, sizeof(entry), &loops, out);
  if (status != DL_OK) return status;
  out->destroy = give_back;
  for (uint32_t i = 0; i < setup->set->count; ++i) {
    const dl_handler *object = setup->set->objects[i];
    entry *e = dl_mechanism_entry(out, i);
    e->object = *object;
    if (moving(setup->set, object) > 0) e->object.state = e->state;
  }
  return DL_OK;
}

extern const dl_arm dl_arm_erasure_inline;
const dl_arm dl_arm_erasure_inline = {
    .name = "erasure-inline",
    .family = "mechanism",
    .guarantee = "first match in registration order",
    .description = "type erasure with the object and up to 64 bytes of its state in the table's entry",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
