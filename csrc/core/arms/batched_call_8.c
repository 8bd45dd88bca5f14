/* batched-call-8: see batched_call.inc. */
#define DL_BATCH ((size_t)8)
#define DL_BATCHED dl_arm_batched_call_8
#define DL_BATCH_NAME "batched-call-8"
#include "batched_call.inc"
