/* A good plugin. -DLEVEL=1 or 2, -DNAME, -DFIRST=key, -DCOUNT=keys, -DRESIDUAL: half of the packets by a bit of the payload. */
#ifndef LEVEL
#define LEVEL 2
#endif
#define DISPATCHLAB_PLUGIN_LEVEL LEVEL
#include <dispatchlab/plugin.h>
#include <stdlib.h>

#ifndef NAME
#define NAME "good"
#endif
#ifndef FIRST
#define FIRST 60000
#endif
#ifndef COUNT
#define COUNT 3
#endif
#ifndef STEP
#define STEP 1
#endif

static uint32_t claimed_keys(uint16_t *keys, uint32_t capacity) {
  for (uint32_t i = 0; i < COUNT && i < capacity; ++i) keys[i] = (uint16_t)(FIRST + STEP * i);
  return COUNT;
}

static int32_t create(void **instance) {
  uint32_t *seed = malloc(sizeof *seed);
  if (seed == NULL) return DISPATCHLAB_FAILED;
  *seed = FIRST;
  *instance = seed;
  return DISPATCHLAB_OK;
}

static void destroy(void *instance) { free(instance); }

static int32_t process(void *instance, const dispatchlab_view *packet, uint32_t *result) {
  uint32_t h = *(const uint32_t *)instance ^ packet->key;
  for (uint64_t i = 0; i < packet->size; ++i) h = (h ^ packet->bytes[i]) * UINT32_C(16777619);
  *result = h | 1u;
  return DISPATCHLAB_OK;
}

#ifdef RESIDUAL
static int32_t matches(void *instance, const dispatchlab_view *packet) {
  (void)instance;
  return packet->size > 0 && (packet->bytes[0] & 1) == RESIDUAL - 1 ? DISPATCHLAB_MATCH : DISPATCHLAB_OK;
}
#define MATCHES matches
#else
#define MATCHES 0
#endif

#if LEVEL >= 2
static int32_t process_batch(void *instance, const dispatchlab_batch *batch) {
  for (uint64_t i = 0; i < batch->count; ++i) {
    const dispatchlab_view *view = (const dispatchlab_view *)((const char *)batch->views + i * batch->view_stride);
    uint32_t *result = (uint32_t *)((char *)batch->results + i * batch->result_stride);
    if (process(instance, view, result) != DISPATCHLAB_OK) *result = 0;
  }
  return DISPATCHLAB_OK;
}
#endif

static const dispatchlab_plugin table = {
    .magic = DISPATCHLAB_PLUGIN_MAGIC,
    .abi_version = LEVEL,
    .struct_size = sizeof(dispatchlab_plugin),
    .oldest_host = 1,
    .name = NAME,
    .claimed_keys = claimed_keys,
    .create = create,
    .destroy = destroy,
    .process = process,
    .matches = MATCHES,
#if LEVEL >= 2
    .process_batch = process_batch,
#endif
};

DISPATCHLAB_PLUGIN_DEFINE(table)
