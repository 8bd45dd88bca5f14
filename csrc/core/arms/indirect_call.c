/* indirect-call: handler 0 through its pointer for every packet, whoever wrote it. What a plugin costs beyond a built-in handler is
 * the difference between this arm over the one and over the other. */
#include <stdlib.h>

#include "arm.h"

typedef struct indirect_state {
  const dl_handler *handler;
} indirect_state;

DL_INLINE dl_result dispatch(const indirect_state *state, const dl_packet *packet, uint32_t *probes) {
  (void)probes;
  return state->handler->process(state->handler, packet);
}

#define DL_ARM_STATE indirect_state
#include "arm_loop.inc"

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  indirect_state *state = malloc(sizeof *state);
  if (state == NULL) return DL_NO_MEMORY;
  state->handler = setup->set->objects[0];
  *out = (dl_prepared){state, free, &loops, 0, NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_indirect_call;
const dl_arm dl_arm_indirect_call = {
    .name = "indirect-call",
    .family = "boundary",
    .guarantee = "one handler, no selection",
    .description = "handler 0 through its pointer for every packet, built in or a plugin's",
    .answers = DL_ANSWERS_HANDLER_0,
    .prepare = prepare,
};
