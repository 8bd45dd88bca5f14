/* static: what templates make of a closed set. The table's slot holds which one it is, each case calls its body by name: nothing is
 * loaded from the object before its code runs. */
#include "choice.h"
#include "closed.h"

#define DL_PER_STAMP "static.inc"
#include "named.inc"

#include "named_list.inc"

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  return dl_closed_prepare(setup, named_loops, out);
}

extern const dl_arm dl_arm_static;
const dl_arm dl_arm_static = {
    .name = "static",
    .family = "mechanism",
    .guarantee = "first match in registration order",
    .description = "static polymorphism: a switch over the number in the table, each case calls its body by name; a closed set cannot admit a plugin",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
