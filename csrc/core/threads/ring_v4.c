/* v4: v3 with the orders that suffice. A test builds it once more with DL_PLANT_*, and ThreadSanitizer must object. */
#define OWN memory_order_relaxed
#ifdef DL_PLANT_RELAXED_LOAD
#define ACQUIRE memory_order_relaxed
#else
#define ACQUIRE memory_order_acquire
#endif
#ifdef DL_PLANT_RELAXED_STORE
#define RELEASE memory_order_relaxed
#else
#define RELEASE memory_order_release
#endif
#define VERSION v4
#define NAME "v4"
#define ABOUT "v3 with acquire and release"
#include "ring_atomic.inc"
