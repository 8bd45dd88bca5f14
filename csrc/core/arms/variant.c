/* variant: the object says in a tag which of a closed set it is; a switch over it calls the body by name. */
#include "choice.h"
#include "closed.h"

#define DL_PER_STAMP "variant.inc"
#include "named.inc"

#include "named_list.inc"

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  return dl_closed_prepare(setup, named_loops, out);
}

extern const dl_arm dl_arm_variant;
const dl_arm dl_arm_variant = {
    .name = "variant",
    .family = "mechanism",
    .guarantee = "first match in registration order",
    .description = "a tagged union: a switch over the tag in the object; a closed set cannot admit a plugin",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
