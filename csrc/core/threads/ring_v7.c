/* v7: v6 that shows and gives back items by the batch, and before it waits (dl_ring.h). */
#include "dispatchlab/dl_ring.h"
#include "compiler.h"

/* Items per batch: an eighth of the ring, so that both ends work at the same time, and 64 lines at most. */
DL_INLINE size_t batch(const dl_ring *r) { return r->mask >= 4095 ? 512 : (r->mask + 1) / 8 | 1; }

DL_INLINE bool push(dl_ring *r, uint64_t item) {
  if (!dl_ring_stage(r, &item)) {
    dl_ring_publish(r);
    return false;
  }
  if (r->staged - atomic_load_explicit(&r->head, memory_order_relaxed) >= batch(r)) dl_ring_publish(r);
  return true;
}

DL_INLINE bool pop(dl_ring *r, uint64_t *item) {
  if (!dl_ring_take(r, item)) {
    dl_ring_release(r);
    return false;
  }
  if (r->taken - atomic_load_explicit(&r->tail, memory_order_relaxed) >= batch(r)) dl_ring_release(r);
  return true;
}

DL_INLINE void finish(dl_ring *r) { dl_ring_publish(r); }

#define VERSION v7
#define NAME "v7"
#define ABOUT "v6 publishing and giving back in batches"
#include "ring_header.inc"
