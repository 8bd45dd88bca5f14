/* table-compact-copy: the same source as table-compact, compiled again. Any difference between the two is where the code
 * happens to stand: the control for calling a placement a result. */
#include "compact.inc"

extern const dl_arm dl_arm_table_compact_copy;
const dl_arm dl_arm_table_compact_copy = {
    .name = "table-compact-copy",
    .family = "control",
    .guarantee = "first match in registration order",
    .description = "table-compact compiled a second time: what it differs by is code placement alone",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
