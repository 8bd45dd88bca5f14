/* An array of numbers and its capacity: what versions v1 to v5 have in common. One slot stays empty to tell full from empty. */
#ifndef DL_RING_COMMON_H
#define DL_RING_COMMON_H

#include <stdint.h>
#include <stdlib.h>

#include "lab.h"

DL_INLINE size_t dl_ring_after(size_t at, size_t size) { return DL_LIKELY(at + 1 != size) ? at + 1 : 0; }

/* A zeroed object on a line pair of its own. */
static inline void *dl_apart(size_t bytes) {
  const size_t whole = (bytes + DL_APART - 1) / DL_APART * DL_APART;
  char *out = bytes > SIZE_MAX / 4 ? NULL : aligned_alloc(DL_APART, whole);
  for (size_t i = 0; out != NULL && i < whole; ++i) out[i] = 0;
  return out;
}

/* open_ring() and close_ring() for a RING with members slots and size. */
#define DL_RING_OPEN                                                            \
  static void *open_ring(size_t capacity) {                                     \
    RING *ring = dl_apart(sizeof *ring);                                        \
    if (ring == NULL) return NULL;                                              \
    ring->size = capacity + 1;                                                  \
    ring->slots = capacity < SIZE_MAX / 64 ? dl_apart((capacity + 1) * sizeof *ring->slots) : NULL; \
    if (ring->slots != NULL) return ring;                                       \
    free(ring);                                                                 \
    return NULL;                                                                \
  }                                                                             \
  static void close_ring(void *opaque) {                                        \
    RING *ring = opaque;                                                        \
    free(ring->slots);                                                          \
    free(ring);                                                                 \
  }

#endif
