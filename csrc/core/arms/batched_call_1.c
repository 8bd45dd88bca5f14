/* batched-call-1: see batched_call.inc. */
#define DL_BATCH ((size_t)1)
#define DL_BATCHED dl_arm_batched_call_1
#define DL_BATCH_NAME "batched-call-1"
#include "batched_call.inc"
