/* Handler 0 of body chain (csrc/core/bodies/chain.inc) on the other side of the plugin boundary: with it, what crossing costs is
 * measured against the very same work inside. -DROUNDS=2 is its tiny, 48 its fat body; -DKEY=257 the key it claims. */
#include <dispatchlab/plugin.h>
#include <stddef.h>

#define PAYLOAD 24
#define MULTIPLIER(r) (((UINT64_C(0x9E3779B97F4A7C15) * ((r) + UINT64_C(1))) ^ UINT64_C(0xD6E8FEB86659FD93)) | 1)

#define R1(r)                                                 \
  h = (h ^ packet->bytes[(r) % PAYLOAD]) * MULTIPLIER(r);     \
  h ^= h >> 29;                                               \
  h = (h << 17) | (h >> 47);
#define R2(r) R1(r) R1((r) + 1)
#define R4(r) R2(r) R2((r) + 2)
#define R12(r) R4(r) R4((r) + 4) R4((r) + 8)
#define R24(r) R12(r) R12((r) + 12)
#define R48(r) R24(r) R24((r) + 24)
#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)

static uint32_t claimed_keys(uint16_t *keys, uint32_t capacity) {
  if (capacity >= 1) keys[0] = KEY;
  return 1;
}

static int32_t create(void **instance) {
  *instance = NULL;
  return DISPATCHLAB_OK;
}

static void destroy(void *instance) { (void)instance; }

static int32_t process(void *instance, const dispatchlab_view *packet, uint32_t *result) {
  (void)instance;
  if (packet->size < PAYLOAD) return DISPATCHLAB_FAILED;
  uint64_t h = MULTIPLIER(63);
  CAT(R, ROUNDS)(0)
  *result = (uint32_t)(h ^ (h >> 32));
  return DISPATCHLAB_OK;
}

static int32_t process_batch(void *instance, const dispatchlab_batch *batch) {
  for (uint64_t i = 0; i < batch->count; ++i) {
    const dispatchlab_view *view = (const dispatchlab_view *)(const void *)((const char *)batch->views + i * batch->view_stride);
    uint32_t *result = (uint32_t *)(void *)((char *)batch->results + i * batch->result_stride);
    if (process(instance, view, result) != DISPATCHLAB_OK) *result = 0;
  }
  return DISPATCHLAB_OK;
}

static const dispatchlab_plugin table = {
    .magic = DISPATCHLAB_PLUGIN_MAGIC,
    .abi_version = DISPATCHLAB_PLUGIN_LEVEL,
    .struct_size = sizeof(dispatchlab_plugin),
    .oldest_host = 1,
    .name = "crossing",
    .claimed_keys = claimed_keys,
    .create = create,
    .destroy = destroy,
    .process = process,
    .process_batch = process_batch,
};

DISPATCHLAB_PLUGIN_DEFINE(table)
