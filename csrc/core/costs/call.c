/* Indirect calls to up to 1024 functions, in turn or at random. */
#include <stdlib.h>

#include "clock.h"
#include "costs.h"

#define MULTIPLIER 0x9E3779B97F4A7C15u

typedef uint64_t (*target)(uint64_t);

/* target_n(x) = x * MULTIPLIER + n + 1: none is equal to another. */
#define ONE(n) \
  static DL_NOINLINE uint64_t DL_CAT(target_, n)(uint64_t x) { return x * MULTIPLIER + (DL_CAT(0x, n) + 1); }
#define NAME(n) DL_CAT(target_, n),
#define DIGIT(M, p) \
  M(p##0) M(p##1) M(p##2) M(p##3) M(p##4) M(p##5) M(p##6) M(p##7) M(p##8) M(p##9) M(p##a) M(p##b) M(p##c) M(p##d) M(p##e) M(p##f)
#define BLOCK(M, p)                                                                                         \
  DIGIT(M, p##0) DIGIT(M, p##1) DIGIT(M, p##2) DIGIT(M, p##3) DIGIT(M, p##4) DIGIT(M, p##5) DIGIT(M, p##6) \
  DIGIT(M, p##7) DIGIT(M, p##8) DIGIT(M, p##9) DIGIT(M, p##a) DIGIT(M, p##b) DIGIT(M, p##c) DIGIT(M, p##d) \
  DIGIT(M, p##e) DIGIT(M, p##f)
BLOCK(ONE, 0) BLOCK(ONE, 1) BLOCK(ONE, 2) BLOCK(ONE, 3)

static const target targets_of[DL_COST_TARGETS] = {BLOCK(NAME, 0) BLOCK(NAME, 1) BLOCK(NAME, 2) BLOCK(NAME, 3)};

static DL_NOINLINE uint64_t call_all(const target *table, const uint16_t *which, uint64_t count) {
  uint64_t x = 1;
  for (uint64_t i = 0; i < count; ++i) x = table[which[i]](x);
  return x;
}

static DL_NOINLINE uint64_t inline_all(const uint16_t *which, uint64_t count) {
  uint64_t x = 1;
  for (uint64_t i = 0; i < count; ++i) {
    x = x * MULTIPLIER + which[i] + 1;
    DL_OPAQUE(x);
  }
  return x;
}

dl_status dl_cost_call(int kind, uint64_t targets, uint64_t count, uint64_t seed, dl_cost *out) {
  if (kind < 0 || kind > 2 || targets < 1 || targets > DL_COST_TARGETS || count < 1 || count > 1u << 26) return DL_BAD_ARGUMENT;
  uint16_t *which = malloc(count * sizeof *which);
  if (which == NULL) return DL_NO_MEMORY;
  for (uint64_t i = 0; i < count; ++i) which[i] = (uint16_t)((kind == 2 ? dl_cost_random(&seed) >> 32 : i) % targets);
  const target *table = targets_of;
  DL_OPAQUE(table);
  const uint64_t begin = dl_ticks_begin();
  uint64_t x = kind == 0 ? inline_all(which, count) : call_all(table, which, count);
  DL_OPAQUE(x);
  out->ticks = (int64_t)(dl_ticks_end() - begin);
  out->count = count;
  out->checksum = x;
  out->expected = inline_all(which, count);
  free(which);
  return DL_OK;
}
