/* v2: look before trying again, and count to 150 between looks. */
#define RELEASE memory_order_seq_cst
#define BACK_OFF_STATE
#define BACK_OFF(lock)                          \
  do {                                          \
    for (volatile int i = 0; i < 150;) i = i + 1; \
  } while (atomic_load(lock));
#define VERSION v2
#define NAME "v2"
#define ABOUT "look first, busy delay"
#include "lock_flag.inc"
