/* table-compact: masked key, verified in the slot. */
#include "compact.inc"

extern const dl_arm dl_arm_table_compact;
const dl_arm dl_arm_table_compact = {
    .name = "table-compact",
    .family = "table",
    .guarantee = "first match in registration order",
    .description = "1024 or more slots chosen by the key's low bits, the key verified in the slot",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
