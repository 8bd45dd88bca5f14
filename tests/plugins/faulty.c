/* A plugin that does one thing wrong: which, the -D on the compiler's command line says. Everything else is as it should be. */
#include <dispatchlab/plugin.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef MAGIC
#define MAGIC DISPATCHLAB_PLUGIN_MAGIC
#endif
#ifndef VERSION
#define VERSION 2
#endif
#ifndef SIZE
#define SIZE sizeof(dispatchlab_plugin)
#endif
#ifndef OLDEST
#define OLDEST 1
#endif
#ifndef RESERVED
#define RESERVED 0
#endif
#ifndef NAME
#define NAME "faulty"
#endif
#ifndef ANNOUNCED
#define ANNOUNCED 3
#endif
#ifndef WRITTEN
#define WRITTEN ANNOUNCED
#endif
#ifndef KEY
#define KEY(i) (60000 + (i))
#endif
#ifndef CREATED
#define CREATED DISPATCHLAB_OK
#endif
#ifndef PROCESSED
#define PROCESSED DISPATCHLAB_OK
#endif
#ifndef IN_CONSTRUCTOR
#define IN_CONSTRUCTOR
#endif
#ifndef IN_ENTRY
#define IN_ENTRY
#endif
#ifndef IN_KEYS
#define IN_KEYS
#endif
#ifndef IN_CREATE
#define IN_CREATE
#endif
#ifndef IN_PROCESS
#define IN_PROCESS
#endif
#ifndef IN_DESTROY
#define IN_DESTROY
#endif
#ifndef TABLE
#define TABLE &table
#endif
#ifndef ENTRY
#define ENTRY dispatchlab_plugin_entry
#endif

/* Proves whether any code of this library ran. */
__attribute__((constructor)) static void constructor(void) {
#ifdef MARK
  FILE *mark = fopen(MARK, "w");
  if (mark != NULL) fclose(mark);
#endif
  IN_CONSTRUCTOR;
}

static uint32_t calls;

static uint32_t claimed_keys(uint16_t *keys, uint32_t capacity) {
  ++calls;
  IN_KEYS;
  for (uint32_t i = 0; i < capacity; ++i) keys[i] = (uint16_t)KEY(i);
  return capacity == 0 ? ANNOUNCED : WRITTEN;
}

static int32_t create(void **instance) {
  *instance = NULL;
  IN_CREATE;
  return CREATED;
}

static void destroy(void *instance) {
  (void)instance;
  IN_DESTROY;
}

static int32_t process(void *instance, const dispatchlab_view *packet, uint32_t *result) {
  (void)instance;
  IN_PROCESS;
  *result = packet->key;
  return PROCESSED;
}

#ifndef PROCESS
#define PROCESS process
#endif
#ifndef CREATE
#define CREATE create
#endif

#ifdef UNDEFINED
extern int nobody_supplies_this(void);
int helper(void);
int helper(void) { return nobody_supplies_this(); }
#endif

static const dispatchlab_plugin table = {
    .magic = MAGIC,
    .abi_version = VERSION,
    .struct_size = SIZE,
    .oldest_host = OLDEST,
    .reserved = RESERVED,
    .name = NAME,
    .claimed_keys = claimed_keys,
    .create = CREATE,
    .destroy = destroy,
    .process = PROCESS,
};

DISPATCHLAB_PLUGIN_EXPORT const dispatchlab_plugin *ENTRY(uint32_t host_level);
const dispatchlab_plugin *ENTRY(uint32_t host_level) {
  (void)host_level;
  (void)claimed_keys, (void)create, (void)process, (void)table;
  IN_ENTRY;
  return TABLE;
}

#ifdef NOTE_OLDEST
static const struct {
  uint32_t name_size, desc_size, type;
  char name[12];
  uint32_t level, oldest_host;
} note __attribute__((section(".note.dispatchlab"), used, aligned(4))) = {12, 8, 1, "dispatchlab", NOTE_OLDEST, NOTE_OLDEST};
#endif
