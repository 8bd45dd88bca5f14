/* v1: an array and two indices. For one thread: nothing orders the two ends. */
#include "ring_common.h"

typedef struct ring {
  uint64_t *slots;
  size_t size, head, tail;
} ring;
#define RING ring

DL_INLINE bool push(ring *r, uint64_t item) {
  const size_t next = dl_ring_after(r->head, r->size);
  if (next == r->tail) return false;
  r->slots[r->head] = item;
  r->head = next;
  return true;
}

DL_INLINE bool pop(ring *r, uint64_t *item) {
  if (r->head == r->tail) return false;
  *item = r->slots[r->tail];
  r->tail = dl_ring_after(r->tail, r->size);
  return true;
}

DL_INLINE void finish(ring *r) { (void)r; }

DL_RING_OPEN
#define VERSION v1
#define NAME "v1"
#define ABOUT "one thread: array and two indices"
#define MASK false
#define THREADS false
#include "ring_loop.inc"
