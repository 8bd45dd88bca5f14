/* scan-simd: the scan without its predicates. Declared keys stand side by side in list order and are compared 16 to 64 at a time; the
 * first that is equal and whose residual predicate, if it has one, accepts is the first match of the list.
 *
 * How many at a time is settled when the arm is prepared: the narrowest that covers the list at once, no wider than this CPU has. So
 * short lists pay for no wide registers, and the loop asks nothing. */
#include <stdlib.h>
#include <string.h>

#include "arm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define WIDEST 64u

typedef struct keyed_list {
  uint16_t *keys; /* in list order, followed by room for a whole vector */
  dl_handler **handlers;
  size_t count;
  uint64_t tail; /* which bits of the last vector are keys */
} keyed_list;

#if defined(__clang__)
#define TARGET_BEGIN(isa) _Pragma(TARGET_TEXT(clang attribute push(__attribute__((target(isa))), apply_to = function)))
#define TARGET_TEXT(x) #x
#define TARGET_END _Pragma("clang attribute pop")
#else
#define TARGET_BEGIN(isa) _Pragma("GCC push_options") _Pragma(TARGET_TEXT(GCC target(isa)))
#define TARGET_TEXT(x) #x
#define TARGET_END _Pragma("GCC pop_options")
#endif

/* One key after the other: where there are no vectors, and for lists that are no longer than a handful. */
DL_INLINE uint64_t equal_scalar(const uint16_t *keys, uint16_t key) {
  uint64_t equal = 0;
  for (unsigned i = 0; i < 4; ++i) equal |= (uint64_t)(keys[i] == key) << i;
  return equal;
}
#define DL_LOOPS loops
#define DL_WIDTH 4
#define DL_EQUAL equal_scalar
#include "scan_simd.inc"

#if defined(__x86_64__)
DL_INLINE uint64_t equal_sse2(const uint16_t *keys, uint16_t key) {
  const __m128i wanted = _mm_set1_epi16((short)key);
  const __m128i low = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)(const void *)keys), wanted);
  const __m128i high = _mm_cmpeq_epi16(_mm_load_si128((const __m128i *)(const void *)(keys + 8)), wanted);
  return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high));
}
#define DL_LOOPS sse2
#define DL_WIDTH 16
#define DL_EQUAL equal_sse2
#include "scan_simd.inc"

TARGET_BEGIN("avx2")
static inline __attribute__((always_inline)) uint64_t equal_avx2(const uint16_t *keys, uint16_t key) {
  const __m256i wanted = _mm256_set1_epi16((short)key);
  const __m256i low = _mm256_cmpeq_epi16(_mm256_load_si256((const __m256i *)(const void *)keys), wanted);
  const __m256i high = _mm256_cmpeq_epi16(_mm256_load_si256((const __m256i *)(const void *)(keys + 16)), wanted);
  const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xD8); /* packing goes by halves */
  return (uint32_t)_mm256_movemask_epi8(bytes);
}
#define DL_LOOPS avx2
#define DL_WIDTH 32
#define DL_EQUAL equal_avx2
#include "scan_simd.inc"
TARGET_END

TARGET_BEGIN("avx512f,avx512bw")
static inline __attribute__((always_inline)) uint64_t equal_avx512(const uint16_t *keys, uint16_t key) {
  const __m512i wanted = _mm512_set1_epi16((short)key);
  const uint64_t low = _mm512_cmpeq_epi16_mask(_mm512_load_si512((const void *)keys), wanted);
  const uint64_t high = _mm512_cmpeq_epi16_mask(_mm512_load_si512((const void *)(keys + 32)), wanted);
  return low | high << 32;
}
#define DL_LOOPS avx512
#define DL_WIDTH 64
#define DL_EQUAL equal_avx512
#include "scan_simd.inc"
TARGET_END
#elif defined(__aarch64__)
DL_INLINE uint64_t equal_neon(const uint16_t *keys, uint16_t key) {
  static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint16x8_t wanted = vdupq_n_u16(key);
  const uint8x8_t low = vmovn_u16(vceqq_u16(vld1q_u16(keys), wanted)), high = vmovn_u16(vceqq_u16(vld1q_u16(keys + 8), wanted));
  const uint8x16_t bits = vandq_u8(vcombine_u8(low, high), vld1q_u8(weights));
  return vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}
#define DL_LOOPS neon
#define DL_WIDTH 16
#define DL_EQUAL equal_neon
#include "scan_simd.inc"
#endif

/* The loops for a list of so many keys on this CPU, and how many keys they compare at a time. */
static const dl_loops *choose(size_t count, size_t *width) {
  const dl_loops *chosen = &loops;
  *width = 4;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (count > 4) chosen = &sse2, *width = 16;
  if (count > 16 && __builtin_cpu_supports("avx2")) chosen = &avx2, *width = 32;
  if (count > 32 && __builtin_cpu_supports("avx512bw")) chosen = &avx512, *width = 64;
#elif defined(__aarch64__)
  if (count > 4) chosen = &neon, *width = 16;
#else
  (void)count;
#endif
  return chosen;
}

static void destroy(void *opaque) {
  keyed_list *list = opaque;
  free(list->keys);
  free(list->handlers);
  free(list);
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  const dl_handler_set *set = setup->set;
  size_t width;
  const dl_loops *chosen = choose(set->count, &width);
  const size_t room = (set->count + WIDEST - 1) / WIDEST * WIDEST;
  keyed_list *list = calloc(1, sizeof *list);
  if (list == NULL) return DL_NO_MEMORY;
  list->keys = aligned_alloc(DL_CACHE_LINE, room * sizeof *list->keys);
  list->handlers = malloc(set->count * sizeof *list->handlers);
  if (list->keys == NULL || list->handlers == NULL) {
    destroy(list);
    return DL_NO_MEMORY;
  }
  memset(list->keys, 0, room * sizeof *list->keys);
  for (size_t i = 0; i < set->count; ++i) {
    list->keys[i] = set->list[i]->key;
    list->handlers[i] = set->list[i];
  }
  list->count = set->count;
  list->tail = UINT64_MAX >> (63 - (set->count - 1) % width);
  *out = (dl_prepared){list, destroy, chosen, room * sizeof *list->keys + set->count * sizeof(dl_handler *), NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_scan_simd;
const dl_arm dl_arm_scan_simd = {
    .name = "scan-simd",
    .family = "scan",
    .guarantee = "first match in registration order",
    .description = "declared keys compared 16 to 64 at a time (SSE2, AVX2, AVX-512, NEON; what this CPU has), residual predicates asked",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
