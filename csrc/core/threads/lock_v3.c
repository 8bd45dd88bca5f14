/* v3: the delay is four pause hints. */
#define RELEASE memory_order_seq_cst
#define BACK_OFF_STATE
#define BACK_OFF(lock)                        \
  do {                                        \
    for (int i = 0; i < 4; ++i) dl_pause();   \
  } while (atomic_load(lock));
#define VERSION v3
#define NAME "v3"
#define ABOUT "look first, pause"
#include "lock_flag.inc"
