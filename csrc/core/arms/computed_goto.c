/* computed-goto: as static, with the jump written out: gcc and clang have labels as values. */
/* gcc sees two computed jumps in the sampling loop and takes each for a way to the labels of the other. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "choice.h"
#include "closed.h"

#define DL_PER_STAMP "computed_goto.inc"
#include "named.inc"

#include "named_list.inc"

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  return dl_closed_prepare(setup, named_loops, out);
}

extern const dl_arm dl_arm_computed_goto;
const dl_arm dl_arm_computed_goto = {
    .name = "computed-goto",
    .family = "mechanism",
    .guarantee = "first match in registration order",
    .description = "static with a jump through a table of labels instead of a switch; a closed set cannot admit a plugin",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
