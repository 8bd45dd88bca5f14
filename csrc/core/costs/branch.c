/* A branch that can be foreseen, and one that nobody can. */
#include <stdlib.h>

#include "clock.h"
#include "costs.h"

/* Both sides hold an empty asm statement: a compiler may not turn them into a conditional move. */
static DL_NOINLINE uint64_t branchy(const uint8_t *bits, uint64_t count) {
  uint64_t sum = 1;
  for (uint64_t i = 0; i < count; ++i) {
    if (bits[i]) {
      sum += 3;
      __asm__ volatile("" : "+r"(sum));
    } else {
      sum ^= 5;
      __asm__ volatile("" : "+r"(sum));
    }
  }
  return sum;
}

/* The same arithmetic chosen without a branch: `bits` are all ones here, so that one side alone is needed. */
static DL_NOINLINE uint64_t straight(const uint8_t *bits, uint64_t count) {
  uint64_t sum = 1;
  for (uint64_t i = 0; i < count; ++i) {
    sum += 3 * (uint64_t)bits[i];
    __asm__ volatile("" : "+r"(sum));
  }
  return sum;
}

static DL_NOINLINE uint64_t by_masks(const uint8_t *bits, uint64_t count) {
  uint64_t sum = 1;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t mask = 0 - (uint64_t)bits[i];
    sum = ((sum + 3) & mask) | ((sum ^ 5) & ~mask);
  }
  return sum;
}

dl_status dl_cost_branch(int kind, uint64_t count, uint64_t seed, dl_cost *out) {
  if (kind < 0 || kind > 2 || count < 1 || count > 1u << 28) return DL_BAD_ARGUMENT;
  uint8_t *bits = malloc(count);
  if (bits == NULL) return DL_NO_MEMORY;
  for (uint64_t i = 0; i < count; ++i)
    bits[i] = kind == 0 ? 1 : kind == 1 ? (uint8_t)(i & 1) : (uint8_t)(dl_cost_random(&seed) >> 63);
  const uint64_t begin = dl_ticks_begin();
  uint64_t sum = kind == 0 ? straight(bits, count) : branchy(bits, count);
  DL_OPAQUE(sum);
  out->ticks = (int64_t)(dl_ticks_end() - begin);
  out->count = count;
  out->checksum = sum;
  out->expected = by_masks(bits, count);
  free(bits);
  return DL_OK;
}
