/* batched-call-256: see batched_call.inc. */
#define DL_BATCH ((size_t)256)
#define DL_BATCHED dl_arm_batched_call_256
#define DL_BATCH_NAME "batched-call-256"
#include "batched_call.inc"
