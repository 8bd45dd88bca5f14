/* What the bodies made of independent lanes share. Constants have 31 bits: they stand in the instructions themselves.
 *
 *   C(i, r) = (M(i, r mod 64) >> (8 + 24 (r div 64))) mod 2^31        S(i, k) = (M(i, 63) >> 4 k) mod 2^31        */
#ifndef DL_BODIES_LANES_H
#define DL_BODIES_LANES_H

#include "stamp.h"

#define DL_LANE_BITS UINT64_C(0x7FFFFFFF)
#define DL_LANE_CONSTANT(i, r) ((DL_MULTIPLIER(i, (r) % 64) >> (8 + 24 * ((r) / 64))) & DL_LANE_BITS)
#define DL_LANE_SEED(i, k) ((DL_SEED(i) >> (4 * (k))) & DL_LANE_BITS)

DL_INLINE uint64_t dl_lane_rotate(uint64_t x, unsigned by) {
  return (x << by) | (x >> (64 - by));
}

/* One step. What stands around it keeps compilers from folding it into the seed, from moving it, and from holding the payload's bytes in spilled registers: a body is
 * executed as it is written. It is no instruction. */
#define DL_LANE_STEP(i, r, lanes, by)                                                                                      \
  __asm__ volatile("" : "+r"(a[(r) % (lanes)]));                                                                           \
  a[(r) % (lanes)] = dl_lane_rotate((a[(r) % (lanes)] ^ DL_LANE_CONSTANT(i, r)) + packet->payload[(r) % DL_PAYLOAD_BYTES], by); \
  __asm__ volatile("" : "+r"(a[(r) % (lanes)]) : : "memory");

#endif
