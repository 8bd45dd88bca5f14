/* The sum over a block's results: keeps the work alive and proves that two arms computed the same answers.
 *
 * sum = r0*w0 + r1*w1 + ... (mod 2^64) with odd weights w(i) = w0 + i*STEP, STEP = 2 (mod 4).
 *  - One altered result always changes the sum: an odd weight is invertible.
 *  - Two swapped results always change it: they differ by (ri-rj)*(i-j)*STEP, and as results have 32 bits, no block
 *    below 2^30 packets can collect the 64 factors of two that would make it vanish.
 *  - A missing or added result shifts every later weight, and the closing term holds the count.
 * Only the additions form a chain, one cycle each; the multiplications overlap. A chain of multiplications (FNV-1a) would
 * cost four cycles a packet and hide differences smaller than that. */
#ifndef DL_CHECKSUM_H
#define DL_CHECKSUM_H

#include "compiler.h"
#include "packet.h"

#define DL_CHECKSUM_FIRST UINT64_C(0x9E3779B97F4A7C15)
#define DL_CHECKSUM_STEP UINT64_C(0xBF58476D1CE4E5BA)

typedef struct dl_checksum {
  uint64_t sum;
  uint64_t weight;
} dl_checksum;

DL_INLINE dl_checksum dl_checksum_start(void) {
  return (dl_checksum){0, DL_CHECKSUM_FIRST};
}

DL_INLINE void dl_checksum_feed(dl_checksum *c, dl_result result) {
  c->sum += (uint64_t)result * c->weight;
  c->weight += DL_CHECKSUM_STEP;
}

DL_INLINE uint64_t dl_checksum_end(const dl_checksum *c) {
  const uint64_t mixed = c->sum ^ (c->weight * DL_CHECKSUM_FIRST);
  return mixed ^ (mixed >> 32);
}

/* FNV-1a a word at a time, the usual checksum of such benchmarks: one chain of multiplications. Only the arm null-serial
 * feeds it, so that its price can be measured. */
typedef struct dl_fnv1a {
  uint64_t hash;
} dl_fnv1a;

DL_INLINE dl_fnv1a dl_fnv1a_start(void) {
  return (dl_fnv1a){UINT64_C(0xCBF29CE484222325)};
}

DL_INLINE void dl_fnv1a_feed(dl_fnv1a *c, dl_result result) {
  c->hash = (c->hash ^ result) * UINT64_C(0x100000001B3);
}

DL_INLINE uint64_t dl_fnv1a_end(const dl_fnv1a *c) {
  return c->hash;
}

#endif
