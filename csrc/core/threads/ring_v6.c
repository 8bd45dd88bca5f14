/* v6: indices that run on and are masked, 128 bytes apart, no slot wasted (dl_ring.h). */
#include "dispatchlab/dl_ring.h"
#include "compiler.h"

DL_INLINE bool push(dl_ring *r, uint64_t item) { return dl_ring_push(r, &item); }
DL_INLINE bool pop(dl_ring *r, uint64_t *item) { return dl_ring_pop(r, item); }
DL_INLINE void finish(dl_ring *r) { (void)r; }

#define VERSION v6
#define NAME "v6"
#define ABOUT "v5 masked, ends 128 bytes apart, no slot wasted"
#include "ring_header.inc"
