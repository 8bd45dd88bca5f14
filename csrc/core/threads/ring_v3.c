/* v3: atomic indices in the order that C gives when none is asked for. */
#define OWN memory_order_seq_cst
#define ACQUIRE memory_order_seq_cst
#define RELEASE memory_order_seq_cst
#define VERSION v3
#define NAME "v3"
#define ABOUT "atomic indices, sequentially consistent"
#include "ring_atomic.inc"
