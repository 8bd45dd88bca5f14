/* batched-call-64: see batched_call.inc. */
#define DL_BATCH ((size_t)64)
#define DL_BATCHED dl_arm_batched_call_64
#define DL_BATCH_NAME "batched-call-64"
#include "batched_call.inc"
