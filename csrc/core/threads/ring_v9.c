/* v9: v7 in place. Each end holds a run of neighbouring slots and walks through it with a pointer; the indices are looked at
 * between the runs only (dl_ring.h). */
#include "ring_common.h"

#include "dispatchlab/dl_ring.h"

typedef struct runs {
  dl_ring ring;
  _Alignas(DL_APART) uint64_t *first, *next, *end;              /* the producer's */
  _Alignas(DL_APART) const uint64_t *oldest, *here, *beyond;    /* the consumer's */
} runs;
#define RING runs

/* Items per run: an eighth of the ring, so that both ends work at the same time, 64 lines at most, and a quarter where an eighth
 * would be a line or less. */
DL_INLINE size_t longest(const dl_ring *r) {
  if (r->mask >= 4095) return 512;
  return r->mask >= 127 ? (r->mask + 1) / 8 : (r->mask + 1) / 4 | 1;
}

DL_INLINE void finish(runs *r) {
  if (r->next == r->first) return;
  dl_ring_show(&r->ring, (size_t)(r->next - r->first));
  r->first = r->next;
}

DL_INLINE bool push(runs *r, uint64_t item) {
  if (!DL_LIKELY(r->next != r->end)) {
    size_t n = longest(&r->ring);
    finish(r);
    r->first = r->next = dl_ring_room(&r->ring, &n, sizeof item);
    r->end = r->next + n;
    if (n == 0) return false;
  }
  *r->next++ = item;
  return true;
}

DL_INLINE bool pop(runs *r, uint64_t *item) {
  if (!DL_LIKELY(r->here != r->beyond)) {
    size_t n = longest(&r->ring);
    if (r->here != r->oldest) dl_ring_give_back(&r->ring, (size_t)(r->here - r->oldest));
    r->oldest = r->here = dl_ring_ready(&r->ring, &n, sizeof *item);
    r->beyond = r->here + n;
    if (n == 0) return false;
  }
  *item = *r->here++;
  return true;
}

static void *open_ring(size_t capacity) {
  runs *r = dl_apart(sizeof *r);
  if (r == NULL || dl_ring_open(&r->ring, capacity, sizeof(uint64_t))) return r;
  free(r);
  return NULL;
}

static void close_ring(void *opaque) {
  dl_ring_close(&((runs *)opaque)->ring);
  free(opaque);
}

#define VERSION v9
#define NAME "v9"
#define ABOUT "v7 in place: runs of neighbouring slots"
#define MASK true
#define THREADS true
#include "ring_loop.inc"
