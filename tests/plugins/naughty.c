/* A plugin that loads, answers, and breaks one rule of the header: -DNAUGHTY_... says which, as statements in one of its functions. */
#include <dispatchlab/plugin.h>
#include <fenv.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef IN_CREATE
#define IN_CREATE
#endif
#ifndef IN_DESTROY
#define IN_DESTROY
#endif
#ifndef IN_PROCESS
#define IN_PROCESS
#endif
#ifndef IN_MATCHES
#define IN_MATCHES
#endif
#ifndef IN_BATCH
#define IN_BATCH
#endif
#ifndef IN_KEYS
#define IN_KEYS
#endif

static uint32_t calls;
#define BYTES ((volatile const uint8_t *)packet->bytes)
static volatile const uint8_t *kept;
static void on_signal(int s) { (void)s; }
static void *sleeper(void *p) { pause(); return p; }
static pthread_t thread;
static void at_exit_loops(void) { for (;;) pause(); }

int helper(void);
int helper(void) { return (int)calls; } /* seen from outside unless visibility is hidden */

static uint32_t claimed_keys(uint16_t *keys, uint32_t capacity) {
  ++calls;
  for (uint32_t i = 0; i < 2 && i < capacity; ++i) keys[i] = (uint16_t)(61000 + i);
  IN_KEYS;
  return 2;
}

static int32_t create(void **instance) {
  int own = 0;
  *instance = malloc(64);
  IN_CREATE;
  (void)own;
  return DISPATCHLAB_OK;
}

static void destroy(void *instance) {
  int own = 0;
  IN_DESTROY;
  if (!own) free(instance);
}

static int32_t process(void *instance, const dispatchlab_view *packet, uint32_t *result) {
  uint32_t h = 1;
  (void)instance;
  ++calls;
  for (uint64_t i = 0; i < packet->size; ++i) h = h * 31 + packet->bytes[i];
  *result = h;
  IN_PROCESS;
  return DISPATCHLAB_OK;
}

static int32_t matches(void *instance, const dispatchlab_view *packet) {
  (void)instance;
  IN_MATCHES;
  return packet->size == 0 || packet->bytes[0] % 2 == 0;
}

static int32_t process_batch(void *instance, const dispatchlab_batch *batch) {
  for (uint64_t i = 0; i < batch->count; ++i) {
    const dispatchlab_view *view = (const dispatchlab_view *)((const char *)batch->views + i * batch->view_stride);
    uint32_t *result = (uint32_t *)((char *)batch->results + i * batch->result_stride);
    process(instance, view, result);
    IN_BATCH;
  }
  return DISPATCHLAB_OK;
}

#ifdef IN_CONSTRUCTOR
__attribute__((constructor)) static void constructed(void) { IN_CONSTRUCTOR; }
#endif

static const dispatchlab_plugin table = {
    .magic = DISPATCHLAB_PLUGIN_MAGIC, .abi_version = 2, .struct_size = sizeof(dispatchlab_plugin), .oldest_host = 1, .name = "naughty",
    .claimed_keys = claimed_keys, .create = create, .destroy = destroy, .process = process, .matches = matches,
    .process_batch = process_batch,
};

DISPATCHLAB_PLUGIN_DEFINE(table)
