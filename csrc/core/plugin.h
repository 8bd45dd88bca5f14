/* Plugins: opening one, agreeing on what it offers, and making an ordinary handler of it. See dispatchlab/plugin.h. */
#ifndef DL_PLUGIN_H
#define DL_PLUGIN_H

#include "dispatchlab/plugin.h"
#include "handlers.h"

/* What a plugin did wrong, and at which stage. */
typedef enum dl_plugin_stage {
  DL_STAGE_LOAD,    /* dlopen, and with it the constructors */
  DL_STAGE_ENTRY,   /* the entry point */
  DL_STAGE_PREFIX,  /* magic, level, size */
  DL_STAGE_TABLE,   /* the functions and fields */
  DL_STAGE_KEYS,    /* claimed_keys */
  DL_STAGE_CREATE,
  DL_STAGE_PROCESS,
  DL_STAGE_DESTROY,
  DL_STAGE_UNLOAD,
  DL_STAGE_DONE
} dl_plugin_stage;

enum { DL_PLUGIN_TEXT = 256, DL_PLUGIN_NAME = 64 };

typedef struct dl_plugin_fault {
  dl_plugin_stage stage;
  char what[DL_PLUGIN_TEXT]; /* empty: nothing is wrong */
  char expected[DL_PLUGIN_TEXT];
  char got[DL_PLUGIN_TEXT];
} dl_plugin_fault;

typedef struct dl_plugin {
  void *library; /* of dlopen; never closed unless asked to */
  dispatchlab_plugin table; /* the host's own copy, of the host's own length: what the plugin has not is NULL */
  char name[DL_PLUGIN_NAME];
  uint32_t level;  /* the plugin's */
  uint64_t table_size;
  uint32_t key_count;
  uint16_t *keys; /* owned */
} dl_plugin;

/* One instance, and what calls it. */
typedef struct dl_instance {
  const dl_plugin *plugin;
  void *instance;
  int64_t failures; /* packets that process() had no answer for */
  int64_t unknown;  /* ... and for which it returned a status that does not exist */
} dl_instance;

/* Told of every stage before it begins, so that whoever watches from outside knows where a plugin ended its process. */
typedef struct dl_plugin_watch {
  void (*enter)(void *context, dl_plugin_stage stage);
  void *context;
} dl_plugin_watch;

/* Maps the library at a path with a slash in it and agrees with it as a host of this level. True: `out` is ready; the caller
 * frees its keys with dl_plugin_release. False: `fault` says what is wrong; whatever was mapped stays mapped. watch may be NULL. */
bool dl_plugin_open(const char *path, uint32_t host_level, const dl_plugin_watch *watch, dl_plugin *out, dl_plugin_fault *fault);
void dl_plugin_release(dl_plugin *plugin);

/* Does in a child process everything that a host will do: opens, agrees, creates, processes a packet for each of the first 64
 * keys, destroys. False with what went wrong there, and a time limit that ran out is one of the things that can. */
bool dl_plugin_rehearse(const char *path, uint32_t host_level, int milliseconds, dl_plugin_fault *fault);

/* An instance of the plugin. The caller destroys what was created. */
bool dl_instance_create(const dl_plugin *plugin, dl_instance *out, dl_plugin_fault *fault);
void dl_instance_destroy(dl_instance *instance);

/* The handler and the predicate of an instance: self->state points to its dl_instance. */
dl_result dl_instance_process(const dl_handler *self, const dl_packet *packet);
bool dl_instance_matches(const dl_handler *self, const dl_packet *packet);

/* What view of a packet a plugin is lent. */
static inline dispatchlab_view dl_view_of(const dl_packet *packet) {
  return (dispatchlab_view){packet->payload, sizeof packet->payload, packet->key, packet->length, packet->flow};
}

/* Runs n packets through process_batch in batches of `batch` packets, conversion included; results[n]. Where the plugin has no
 * process_batch, or it fails, packet by packet. */
void dl_instance_run(dl_instance *instance, const dl_packet *packets, size_t n, size_t batch, dl_result *results);

#endif
