/* v5: v4, and each end remembers the other's index: it reads the other's line only when the ring seems full or empty. */
#include "ring_common.h"

typedef struct ring {
  uint64_t *slots;
  size_t size;
  _Alignas(64) _Atomic size_t head;
  _Alignas(64) size_t head_seen;
  _Alignas(64) _Atomic size_t tail;
  _Alignas(64) size_t tail_seen;
} ring;
#define RING ring

DL_INLINE bool push(ring *r, uint64_t item) {
  const size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
  const size_t next = dl_ring_after(head, r->size);
  if (next == r->tail_seen) {
    r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
    if (next == r->tail_seen) return false;
  }
  r->slots[head] = item;
  atomic_store_explicit(&r->head, next, memory_order_release);
  return true;
}

DL_INLINE bool pop(ring *r, uint64_t *item) {
  const size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
  if (tail == r->head_seen) {
    r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
    if (tail == r->head_seen) return false;
  }
  *item = r->slots[tail];
  atomic_store_explicit(&r->tail, dl_ring_after(tail, r->size), memory_order_release);
  return true;
}

DL_INLINE void finish(ring *r) { (void)r; }

DL_RING_OPEN
#define VERSION v5
#define NAME "v5"
#define ABOUT "v4 with the other end's index remembered"
#define MASK false
#define THREADS true
#include "ring_loop.inc"
