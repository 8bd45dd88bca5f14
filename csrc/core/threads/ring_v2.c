/* v2: v1 under a mutex. */
#include <pthread.h>

#include "ring_common.h"

typedef struct ring {
  pthread_mutex_t mutex;
  uint64_t *slots;
  size_t size, head, tail;
} ring;
#define RING ring

DL_INLINE bool push(ring *r, uint64_t item) {
  pthread_mutex_lock(&r->mutex);
  const size_t next = dl_ring_after(r->head, r->size);
  const bool room = next != r->tail;
  if (room) {
    r->slots[r->head] = item;
    r->head = next;
  }
  pthread_mutex_unlock(&r->mutex);
  return room;
}

DL_INLINE bool pop(ring *r, uint64_t *item) {
  pthread_mutex_lock(&r->mutex);
  const bool some = r->head != r->tail;
  if (some) {
    *item = r->slots[r->tail];
    r->tail = dl_ring_after(r->tail, r->size);
  }
  pthread_mutex_unlock(&r->mutex);
  return some;
}

DL_INLINE void finish(ring *r) { (void)r; }

static void *open_ring(size_t capacity) {
  ring *r = dl_apart(sizeof *r);
  if (r == NULL) return NULL;
  r->size = capacity + 1;
  r->slots = capacity < SIZE_MAX / 64 ? dl_apart((capacity + 1) * sizeof *r->slots) : NULL;
  if (r->slots != NULL && pthread_mutex_init(&r->mutex, NULL) == 0) return r;
  free(r->slots);
  free(r);
  return NULL;
}

static void close_ring(void *opaque) {
  ring *r = opaque;
  pthread_mutex_destroy(&r->mutex);
  free(r->slots);
  free(r);
}

#define VERSION v2
#define NAME "v2"
#define ABOUT "a mutex around v1"
#define MASK false
#define THREADS true
#include "ring_loop.inc"
