/* v4: the delay doubles, from 4 pauses to 1024. */
#define RELEASE memory_order_seq_cst
#define BACK_OFF_STATE int delay = 4;
#define BACK_OFF(lock)                              \
  do {                                              \
    for (int i = 0; i < delay; ++i) dl_pause();     \
    delay = delay < 512 ? 2 * delay : 1024;         \
  } while (atomic_load(lock));
#define VERSION v4
#define NAME "v4"
#define ABOUT "exponential backoff"
#include "lock_flag.inc"
