/* What stamped code is made from: the constants of handler i, and the code its key is compared in. */
#ifndef DL_STAMP_H
#define DL_STAMP_H

#include "handlers.h"

/* Odd 64-bit multiplier of handler i in step r < 64. Distinct for every (i, r). */
#define DL_MULTIPLIER(i, r) \
  (((UINT64_C(0x9E3779B97F4A7C15) * ((UINT64_C(i) * 64) + (r) + 1)) ^ UINT64_C(0xD6E8FEB86659FD93)) | 1)

/* Where handler i's value starts. */
#define DL_SEED(i) DL_MULTIPLIER(i, 63)

/* What handler i's predicate xors both keys with. */
#define DL_KEY_CODE(i) ((uint16_t)((i) * 40503u + 1u))

/* Every stamp that stamps.def lists. */
#define DL_STAMP(body, size) extern const dl_stamp dl_stamp_##body##_##size;
#include "stamps.def"
#undef DL_STAMP

#endif
