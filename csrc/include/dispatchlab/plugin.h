/* dispatchlab/plugin.h: the boundary between dispatchlab and handlers that it has never seen.
 *
 * A plugin is a shared library that exports one symbol, dispatchlab_plugin_entry(). It returns a table of functions that
 * begins with 16 bytes which never change; whatever is added later is added at the end. Only fixed-width integers, pointers
 * and C functions cross the boundary: the table can be written in C, in C++ (everything is extern "C"), or by hand in Rust
 * or Zig.
 *
 * Levels. abi_version is the level the plugin was compiled for: define DISPATCHLAB_PLUGIN_LEVEL before including this file
 * to get the table of an earlier one, which really is shorter.
 *
 *   plugin older than the host    loads; what it lacks is NULL to the host
 *   plugin as old as the host     loads
 *   plugin newer than the host    loads when its oldest_host is not above the host's level: the host ignores what it does not
 *                                 know. Else it is refused, and so is a level above DISPATCHLAB_PLUGIN_HIGHEST.
 *
 * What holds for every function of the table:
 *   Threads    The host calls one instance from one thread at a time; different instances may run at the same time. A
 *              function must not start threads that outlive it, nor change signal handlers, the locale, the rounding mode
 *              or the working directory.
 *   Errors     No function may end the process, longjmp out or let an exception out. Failure is a status.
 *   Memory     Who allocates frees. The table, and everything it points to, lives as long as the library is mapped. */
#ifndef DISPATCHLAB_PLUGIN_H
#define DISPATCHLAB_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DISPATCHLAB_PLUGIN_MAGIC UINT32_C(0x31504C44) /* "DLP1" in memory on a little-endian machine */
#define DISPATCHLAB_PLUGIN_LATEST 2
#define DISPATCHLAB_PLUGIN_HIGHEST 1000 /* no level is ever above this: larger numbers are something else */
#ifndef DISPATCHLAB_PLUGIN_LEVEL
#define DISPATCHLAB_PLUGIN_LEVEL DISPATCHLAB_PLUGIN_LATEST
#endif

/* The most keys that one plugin may claim: every key there is. */
#define DISPATCHLAB_PLUGIN_MOST_KEYS 65536

/* What process() and matches() may return. Any other number is an error of the plugin. */
enum {
  DISPATCHLAB_OK = 0,      /* process: *result is the answer. matches: the packet is not this plugin's */
  DISPATCHLAB_MATCH = 1,   /* matches only: the packet is this plugin's */
  DISPATCHLAB_FAILED = -1  /* process: there is no answer; the host takes 0 for it. create: there is no instance */
};

/* One packet, lent to the plugin until the function returns: neither it nor a pointer into it may be kept, and it must not
 * be written to. bytes may be NULL when size is 0; a plugin must not read beyond size. */
typedef struct dispatchlab_view {
  const uint8_t *bytes; /* the payload */
  uint64_t size;        /* bytes of payload */
  uint16_t key;         /* the key that selected this plugin */
  uint16_t length;      /* length on the wire */
  uint32_t flow;        /* the conversation that the packet belongs to */
} dispatchlab_view;

#if DISPATCHLAB_PLUGIN_LEVEL >= 2
/* `count` packets of one batch. Packet i's view stands at (const char *)views + i * view_stride, its result goes to
 * (char *)results + i * result_stride: strides are in bytes, and a later level may make the elements longer. */
typedef struct dispatchlab_batch {
  const dispatchlab_view *views;
  uint64_t view_stride;
  uint32_t *results;
  uint64_t result_stride;
  uint64_t count;
} dispatchlab_batch;
#endif

typedef struct dispatchlab_plugin {
  /* The prefix, 16 bytes, frozen for ever: read before anything else is believed. */
  uint32_t magic;       /* DISPATCHLAB_PLUGIN_MAGIC */
  uint32_t abi_version; /* the level this table is of: 1, 2, ... */
  uint64_t struct_size; /* sizeof this table as the plugin was compiled; a multiple of 8, at most 4096 */

  /* Level 1. */
  uint32_t oldest_host; /* the lowest level of a host that this plugin works with */
  uint32_t reserved;    /* 0 */
  const char *name;     /* UTF-8, at most 63 bytes; the host copies it */

  /* Asked twice: with capacity 0 (keys is NULL) it returns how many keys the plugin claims, 1 to 65536; then, with room for
   * so many, it writes them and returns the same number. Keys are distinct, and the same every time. Called without an
   * instance; must not allocate for good. Required. */
  uint32_t (*claimed_keys)(uint16_t *keys, uint32_t capacity);

  /* Makes an instance and stores it in *instance; DISPATCHLAB_OK, or DISPATCHLAB_FAILED with nothing to be destroyed. A
   * plugin without state may store NULL and return DISPATCHLAB_OK. The host destroys what was made exactly once, whatever
   * happens in between. Required. */
  int32_t (*create)(void **instance);
  void (*destroy)(void *instance);

  /* The handler: one packet in, one result out. The view is lent for the call; *result is the caller's storage, written
   * only with DISPATCHLAB_OK. The same instance gives the same result for the same packet. Required. */
  int32_t (*process)(void *instance, const dispatchlab_view *packet, uint32_t *result);

  /* May be NULL: then every packet with a claimed key is the plugin's. Else DISPATCHLAB_MATCH or DISPATCHLAB_OK; it may look at
   * the first byte of the payload only, and must not depend on the instance's history. */
  int32_t (*matches)(void *instance, const dispatchlab_view *packet);

#if DISPATCHLAB_PLUGIN_LEVEL >= 2
  /* Level 2. May be NULL. Does for every packet of the batch what process() does, in order, with the same results; a packet
   * that process() would fail has result 0. DISPATCHLAB_OK, or DISPATCHLAB_FAILED: then no result counts. */
  int32_t (*process_batch)(void *instance, const dispatchlab_batch *batch);
#endif
} dispatchlab_plugin;

/* The one exported symbol. host_level is the host's level, for a plugin that has several tables. Never NULL. */
typedef const dispatchlab_plugin *(*dispatchlab_plugin_entry_fn)(uint32_t host_level);
#define DISPATCHLAB_PLUGIN_SYMBOL "dispatchlab_plugin_entry"

#if defined(__GNUC__)
#define DISPATCHLAB_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define DISPATCHLAB_PLUGIN_EXPORT
#endif

#ifdef __cplusplus
#define DISPATCHLAB_PLUGIN_C extern "C"
#else
#define DISPATCHLAB_PLUGIN_C
#endif

/* An ELF note that says the level without the library being loaded; optional, and a host that finds none asks the table. */
#if defined(__ELF__)
#define DISPATCHLAB_PLUGIN_NOTE                                                                                      \
  static const struct {                                                                                               \
    uint32_t name_size, desc_size, type;                                                                             \
    char name[12];                                                                                                   \
    uint32_t level, oldest_host;                                                                                     \
  } dispatchlab_plugin_note __attribute__((section(".note.dispatchlab"), used, aligned(4))) = {                      \
      12, 8, 1, "dispatchlab", DISPATCHLAB_PLUGIN_LEVEL, 1};
#else
#define DISPATCHLAB_PLUGIN_NOTE
#endif

/* Defines the entry point and the note for a table of the plugin's own. */
#define DISPATCHLAB_PLUGIN_DEFINE(table)                                                                              \
  DISPATCHLAB_PLUGIN_NOTE                                                                                             \
  DISPATCHLAB_PLUGIN_C DISPATCHLAB_PLUGIN_EXPORT const dispatchlab_plugin *dispatchlab_plugin_entry(uint32_t host_level); \
  const dispatchlab_plugin *dispatchlab_plugin_entry(uint32_t host_level) {                                           \
    (void)host_level;                                                                                                 \
    return &(table);                                                                                                  \
  }

#ifdef __cplusplus
}
#endif
#endif
