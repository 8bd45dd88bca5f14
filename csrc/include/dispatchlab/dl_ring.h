/* dl_ring: a queue for one producer thread and one consumer thread. C11, header only, nothing but the standard library.
 *
 *   dl_ring ring;
 *   if (!dl_ring_open(&ring, 1024, sizeof(struct order))) ...     1024 items, a power of two
 *   dl_ring_push(&ring, &order)   false when full                 (producer only)
 *   dl_ring_pop(&ring, &order)    false when empty                (consumer only)
 *   dl_ring_close(&ring);
 *
 * Batches: dl_ring_stage() puts an item where the consumer does not see it yet, dl_ring_publish() shows all staged ones;
 * dl_ring_take() reads without giving the slot back, dl_ring_release() gives all taken ones back. Publish before waiting
 * for the consumer and release before waiting for the producer, or both wait for ever.
 *
 * In place: dl_ring_room() says where the next free slots lie side by side, dl_ring_show() shows what was written there;
 * dl_ring_ready() says where the next items lie side by side, dl_ring_give_back() frees their slots. No copy, and one index
 * for many items. dl_ring_push_many() and dl_ring_pop_many() copy arrays with them.
 *
 * Both indices run on and are masked when used, so no slot is wasted. What the producer writes and what the consumer writes
 * lie 128 bytes apart: the adjacent-line prefetcher of x86 fetches lines in pairs. */
#ifndef DISPATCHLAB_DL_RING_H
#define DISPATCHLAB_DL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DL_RING_APART 128

typedef struct dl_ring {
  _Alignas(DL_RING_APART) _Atomic size_t head; /* written by the producer: items published */
  size_t staged;                               /* the producer's own: items written */
  size_t tail_seen;                            /* the producer's own: tail as last read */
  _Alignas(DL_RING_APART) _Atomic size_t tail; /* written by the consumer: items given back */
  size_t taken;                                /* the consumer's own: items read */
  size_t head_seen;                            /* the consumer's own: head as last read */
  _Alignas(DL_RING_APART) unsigned char *slots;
  size_t mask;
} dl_ring;

/* False: capacity is no power of two of 2 or more, an item has no bytes, or there is no memory for so many. */
static inline bool dl_ring_open(dl_ring *ring, size_t capacity, size_t item) {
  memset(ring, 0, sizeof *ring);
  if (capacity < 2 || (capacity & (capacity - 1)) != 0 || item == 0 || capacity > SIZE_MAX / 2 / item) return false;
  const size_t bytes = (capacity * item + DL_RING_APART - 1) / DL_RING_APART * DL_RING_APART;
  ring->slots = aligned_alloc(DL_RING_APART, bytes);
  ring->mask = capacity - 1;
  if (ring->slots != NULL) memset(ring->slots, 0, bytes); /* the first pass shall not pay for page faults */
  return ring->slots != NULL;
}

static inline void dl_ring_close(dl_ring *ring) {
  free(ring->slots);
  ring->slots = NULL;
}

static inline bool dl_ring_stage_bytes(dl_ring *ring, const void *item, size_t bytes) {
  const size_t at = ring->staged;
  if (at - ring->tail_seen > ring->mask) {
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (at - ring->tail_seen > ring->mask) return false;
  }
  memcpy(ring->slots + (at & ring->mask) * bytes, item, bytes);
  ring->staged = at + 1;
  return true;
}

static inline void dl_ring_publish(dl_ring *ring) {
  atomic_store_explicit(&ring->head, ring->staged, memory_order_release);
}

static inline bool dl_ring_take_bytes(dl_ring *ring, void *item, size_t bytes) {
  const size_t at = ring->taken;
  if (at == ring->head_seen) {
    ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
    if (at == ring->head_seen) return false;
  }
  memcpy(item, ring->slots + (at & ring->mask) * bytes, bytes);
  ring->taken = at + 1;
  return true;
}

static inline void dl_ring_release(dl_ring *ring) {
  atomic_store_explicit(&ring->tail, ring->taken, memory_order_release);
}

static inline bool dl_ring_push_bytes(dl_ring *ring, const void *item, size_t bytes) {
  if (!dl_ring_stage_bytes(ring, item, bytes)) return false;
  dl_ring_publish(ring);
  return true;
}

static inline bool dl_ring_pop_bytes(dl_ring *ring, void *item, size_t bytes) {
  if (!dl_ring_take_bytes(ring, item, bytes)) return false;
  dl_ring_release(ring);
  return true;
}

/* Where the next free slots lie side by side. *n: how many are wanted; then how many there are, 0 when the ring is full.
 * Whatever was staged must have been published. */
static inline void *dl_ring_room(dl_ring *ring, size_t *n, size_t bytes) {
  const size_t at = ring->staged, size = ring->mask + 1, straight = size - (at & ring->mask);
  size_t room = size - (at - ring->tail_seen);
  if (room < *n) {
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    room = size - (at - ring->tail_seen);
  }
  if (room > straight) room = straight;
  if (*n > room) *n = room;
  return ring->slots + (at & ring->mask) * bytes;
}

/* The consumer may have the n slots that were written after dl_ring_room(). */
static inline void dl_ring_show(dl_ring *ring, size_t n) {
  ring->staged += n;
  dl_ring_publish(ring);
}

/* Where the next items lie side by side. *n: how many are wanted; then how many there are, 0 when the ring is empty. */
static inline const void *dl_ring_ready(dl_ring *ring, size_t *n, size_t bytes) {
  const size_t at = ring->taken, straight = ring->mask + 1 - (at & ring->mask);
  size_t there = ring->head_seen - at;
  if (there < *n) {
    ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
    there = ring->head_seen - at;
  }
  if (there > straight) there = straight;
  if (*n > there) *n = there;
  return ring->slots + (at & ring->mask) * bytes;
}

/* The producer may have the slots of the first n items after dl_ring_ready(). */
static inline void dl_ring_give_back(dl_ring *ring, size_t n) {
  ring->taken += n;
  dl_ring_release(ring);
}

/* Copies up to n items in; how many there was room for. */
static inline size_t dl_ring_push_many_bytes(dl_ring *ring, const void *items, size_t n, size_t bytes) {
  size_t done = 0;
  for (int runs = 0; runs < 2 && done < n; ++runs) { /* the second where the ring begins again */
    size_t run = n - done;
    void *to = dl_ring_room(ring, &run, bytes);
    memcpy(to, (const unsigned char *)items + done * bytes, run * bytes);
    ring->staged += run;
    done += run;
  }
  dl_ring_publish(ring);
  return done;
}

/* Copies up to n items out; how many there were. */
static inline size_t dl_ring_pop_many_bytes(dl_ring *ring, void *items, size_t n, size_t bytes) {
  size_t done = 0;
  for (int runs = 0; runs < 2 && done < n; ++runs) {
    size_t run = n - done;
    const void *from = dl_ring_ready(ring, &run, bytes);
    memcpy((unsigned char *)items + done * bytes, from, run * bytes);
    ring->taken += run;
    done += run;
  }
  dl_ring_release(ring);
  return done;
}

/* `item` is a pointer to the very type that the ring was opened for: its size is a constant to the compiler. */
#define dl_ring_stage(ring, item) dl_ring_stage_bytes((ring), (item), sizeof *(item))
#define dl_ring_take(ring, item) dl_ring_take_bytes((ring), (item), sizeof *(item))
#define dl_ring_push(ring, item) dl_ring_push_bytes((ring), (item), sizeof *(item))
#define dl_ring_pop(ring, item) dl_ring_pop_bytes((ring), (item), sizeof *(item))
#define dl_ring_push_many(ring, items, n) dl_ring_push_many_bytes((ring), (items), (n), sizeof *(items))
#define dl_ring_pop_many(ring, items, n) dl_ring_pop_many_bytes((ring), (items), (n), sizeof *(items))

#endif
