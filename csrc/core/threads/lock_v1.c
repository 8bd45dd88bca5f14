/* v1: exchange until it was clear, in C's default order, as the published version. */
#define RELEASE memory_order_seq_cst
#define BACK_OFF_STATE
#define BACK_OFF(lock)
#define VERSION v1
#define NAME "v1"
#define ABOUT "exchange"
#include "lock_flag.inc"
