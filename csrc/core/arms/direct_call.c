/* direct-call: the control. One handler, known when this file is compiled, is called for every packet: no selection, no
 * indirection. What an arm costs beyond it is the price of finding and reaching a handler.
 *
 * The callee must be a name and not a pointer, so there are loops for each body and size. It is handler number 0, whatever
 * the order of the list. */
#include <stdlib.h>

#include "arm.h"
#include "closed.h"

typedef struct direct_state {
  const dl_handler *handler;
} direct_state;

#define DL_PER_STAMP "direct_call.inc"
#include "per_stamp.inc"

static const struct {
  dl_process_fn callee;
  const dl_loops *loops;
} direct_loops[] = {
#define DL_STAMP(body, size) {dl_##body##_##size##_0, &loops_##body##_##size},
#include "stamps.def"
#undef DL_STAMP
};

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  const dl_handler *handler = setup->set->objects[0];
  for (size_t i = 0; i < sizeof direct_loops / sizeof *direct_loops; ++i) {
    if (direct_loops[i].callee != handler->process) continue;
    direct_state *state = malloc(sizeof *state);
    if (state == NULL) return DL_NO_MEMORY;
    state->handler = handler;
    *out = (dl_prepared){state, free, direct_loops[i].loops, 0, NULL};
    return DL_OK;
  }
  return DL_NOT_ALLOWED;
}

extern const dl_arm dl_arm_direct_call;
const dl_arm dl_arm_direct_call = {
    .name = "direct-call",
    .family = "control",
    .guarantee = "one handler, no selection",
    .description = "the control: handler 0 called by name for every packet",
    .answers = DL_ANSWERS_HANDLER_0,
    .prepare = prepare,
};
