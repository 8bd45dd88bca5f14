/* null: the loop and the checksum with no handler behind them. What it costs is the floor under every other arm. */
#include "null.inc"

extern const dl_arm dl_arm_null;
const dl_arm dl_arm_null = {
    .name = "null",
    .family = "control",
    .guarantee = "no handler is called",
    .description = "the loop floor: reads the key, feeds the checksum, calls nothing",
    .answers = DL_ANSWERS_KEY,
    .prepare = prepare,
};
