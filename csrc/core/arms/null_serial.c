/* null-serial: the same loop floor with the usual checksum, a chain of multiplications, to show what that would cost. */
#define DL_SUM dl_fnv1a
#include "null.inc"

extern const dl_arm dl_arm_null_serial;
const dl_arm dl_arm_null_serial = {
    .name = "null-serial",
    .family = "control",
    .guarantee = "no handler is called",
    .description = "the loop floor with a serial FNV-1a checksum in place of ours",
    .answers = DL_ANSWERS_KEY_SERIAL,
    .prepare = prepare,
};
