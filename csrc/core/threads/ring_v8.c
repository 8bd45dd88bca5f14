/* v8: every slot says by its own number whose turn it is; there are no shared indices. */
#include "ring_common.h"

typedef struct slot {
  _Atomic uint64_t turn; /* position: free for it; position + 1: filled */
  uint64_t item;
} slot;

typedef struct ring {
  slot *slots;
  size_t size; /* a power of two */
  _Alignas(DL_APART) size_t head;
  _Alignas(DL_APART) size_t tail;
} ring;
#define RING ring

DL_INLINE bool push(ring *r, uint64_t item) {
  slot *s = &r->slots[r->head & (r->size - 1)];
  if (atomic_load_explicit(&s->turn, memory_order_acquire) != r->head) return false;
  s->item = item;
  atomic_store_explicit(&s->turn, ++r->head, memory_order_release);
  return true;
}

DL_INLINE bool pop(ring *r, uint64_t *item) {
  slot *s = &r->slots[r->tail & (r->size - 1)];
  if (atomic_load_explicit(&s->turn, memory_order_acquire) != r->tail + 1) return false;
  *item = s->item;
  atomic_store_explicit(&s->turn, r->tail++ + r->size, memory_order_release);
  return true;
}

DL_INLINE void finish(ring *r) { (void)r; }

static void *open_ring(size_t capacity) {
  ring *r = dl_apart(sizeof *r);
  if (r == NULL) return NULL;
  r->size = capacity;
  r->slots = capacity < SIZE_MAX / 64 ? dl_apart(capacity * sizeof *r->slots) : NULL;
  if (r->slots == NULL) {
    free(r);
    return NULL;
  }
  for (size_t i = 0; i < capacity; ++i) atomic_init(&r->slots[i].turn, i);
  return r;
}

static void close_ring(void *opaque) {
  ring *r = opaque;
  free(r->slots);
  free(r);
}

#define VERSION v8
#define NAME "v8"
#define ABOUT "a turn number in every slot, no shared index"
#define MASK true
#define THREADS true
#include "ring_loop.inc"
