/* Every version, in the order of their derivation. */
#include "checksum.h"
#include "labs.h"

#define RINGS(X) X(v1) X(v2) X(v3) X(v4) X(v5) X(v6) X(v7) X(v8) X(v9)
#define LOCKS(X) X(v0) X(v1) X(v2) X(v3) X(v4) X(v5) X(v6) X(v7)

#define DECLARE(v) extern const dl_ring_version dl_ring_##v;
RINGS(DECLARE)
#undef DECLARE
#define DECLARE(v) extern const dl_lock_version dl_lock_##v;
LOCKS(DECLARE)

#define ENTER(v) &dl_ring_##v,
const dl_ring_version *const dl_ring_versions[] = {RINGS(ENTER) NULL};
#undef ENTER
#define ENTER(v) &dl_lock_##v,
const dl_lock_version *const dl_lock_versions[] = {LOCKS(ENTER) NULL};

uint64_t dl_transfer_expected(uint64_t count) {
  dl_checksum sum = dl_checksum_start();
  for (uint64_t i = 0; i < count; ++i) dl_checksum_feed(&sum, (dl_result)i);
  return dl_checksum_end(&sum);
}
