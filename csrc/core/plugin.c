/* Opening a plugin and agreeing with it; instances, and the handler that calls one. */
#include "plugin.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 4096, LEVEL_1_BYTES = offsetof(dispatchlab_plugin, process_batch) };

/* Fills in the fault; always false, so that a check can return it. got is a format. */
__attribute__((format(printf, 5, 6))) static bool fail(dl_plugin_fault *fault, dl_plugin_stage stage, const char *what,
                                                       const char *expected, const char *got, ...) {
  va_list more;
  fault->stage = stage;
  snprintf(fault->what, sizeof fault->what, "%s", what);
  snprintf(fault->expected, sizeof fault->expected, "%s", expected);
  va_start(more, got);
  vsnprintf(fault->got, sizeof fault->got, got, more);
  va_end(more);
  return false;
}

/* The shortest table that a plugin of this level can have. */
static uint64_t least_bytes(uint32_t level) {
  return level == 1 ? LEVEL_1_BYTES : sizeof(dispatchlab_plugin);
}

static bool check_prefix(const dispatchlab_plugin *t, uint32_t host, dl_plugin_fault *fault) {
  char expected[96];
  if (t->magic != DISPATCHLAB_PLUGIN_MAGIC)
    return fail(fault, DL_STAGE_PREFIX, "the table has another magic number", "0x31504c44", "0x%08x", (unsigned)t->magic);
  if (t->abi_version < 1 || t->abi_version > DISPATCHLAB_PLUGIN_HIGHEST)
    return fail(fault, DL_STAGE_PREFIX, "no level of the ABI has this number", "abi_version 1 to 1000", "%u",
                (unsigned)t->abi_version);
  const uint32_t known = t->abi_version < DISPATCHLAB_PLUGIN_LATEST ? t->abi_version : DISPATCHLAB_PLUGIN_LATEST;
  const uint64_t least = least_bytes(known);
  snprintf(expected, sizeof expected, "struct_size %u to %u, a multiple of 8, at level %u", (unsigned)least,
           (unsigned)MOST_BYTES, (unsigned)t->abi_version);
  if (t->struct_size < least || t->struct_size > MOST_BYTES || t->struct_size % 8 != 0)
    return fail(fault, DL_STAGE_PREFIX, "the table cannot have this size", expected, "%llu",
                (unsigned long long)t->struct_size);
  (void)host;
  return true;
}

static bool check_table(const dl_plugin *p, uint32_t host, dl_plugin_fault *fault) {
  const dispatchlab_plugin *t = &p->table;
  if (t->oldest_host < 1 || t->oldest_host > t->abi_version)
    return fail(fault, DL_STAGE_TABLE, "oldest_host names no host", "a level from 1 to the plugin's own", "%u",
                (unsigned)t->oldest_host);
  if (t->oldest_host > host)
    return fail(fault, DL_STAGE_TABLE, "the plugin needs a newer host", "oldest_host at or below this host's level",
                "%u, and the host is of level %u", (unsigned)t->oldest_host, (unsigned)host);
  if (t->reserved != 0)
    return fail(fault, DL_STAGE_TABLE, "a reserved field is set", "reserved 0", "%u", (unsigned)t->reserved);
  const struct {
    const char *name;
    bool there;
  } required[] = {{"name", t->name != NULL},     {"claimed_keys", t->claimed_keys != NULL}, {"create", t->create != NULL},
                  {"destroy", t->destroy != NULL}, {"process", t->process != NULL}};
  for (size_t i = 0; i < sizeof required / sizeof *required; ++i)
    if (!required[i].there) return fail(fault, DL_STAGE_TABLE, "a required entry is missing", required[i].name, "NULL");
  if (strnlen(t->name, DL_PLUGIN_NAME) == DL_PLUGIN_NAME)
    return fail(fault, DL_STAGE_TABLE, "the name does not end", "at most 63 bytes", "more");
  return true;
}

/* Reads no more than the prefix before the prefix has been checked, and no more than both sides know after that. */
static bool copy_table(const void *theirs, uint32_t host, dl_plugin *out, dl_plugin_fault *fault) {
  memset(&out->table, 0, sizeof out->table);
  memcpy(&out->table, theirs, 16);
  if (!check_prefix(&out->table, host, fault)) return false;
  out->level = out->table.abi_version;
  out->table_size = out->table.struct_size;
  uint64_t shared = out->table_size < sizeof out->table ? out->table_size : sizeof out->table;
  if (shared > least_bytes(host)) shared = least_bytes(host);
  memcpy(&out->table, theirs, shared);
  if (!check_table(out, host, fault)) return false;
  memcpy(out->name, out->table.name, strnlen(out->table.name, DL_PLUGIN_NAME - 1));
  return true;
}

/* One reading: how many, then which. Room for one more than was announced, and a canary in it, catch a count that lies. */
static uint16_t *ask_keys(const dl_plugin *p, uint32_t *count, dl_plugin_fault *fault) {
  const uint32_t announced = p->table.claimed_keys(NULL, 0);
  if (announced < 1 || announced > DISPATCHLAB_PLUGIN_MOST_KEYS) {
    fail(fault, DL_STAGE_KEYS, "the number of claimed keys is out of range", "1 to 65536", "%u", (unsigned)announced);
    return NULL;
  }
  uint16_t *keys = calloc(announced + 64u, sizeof *keys);
  if (keys == NULL) {
    fail(fault, DL_STAGE_KEYS, "no memory for the keys", "room", "%u keys", (unsigned)announced);
    return NULL;
  }
  memset(keys + announced, 0xA5, 64 * sizeof *keys);
  const uint32_t written = p->table.claimed_keys(keys, announced);
  bool beyond = false;
  for (uint32_t i = 0; i < 64; ++i) beyond = beyond || keys[announced + i] != 0xA5A5u;
  if (written != announced || beyond) {
    if (beyond) fail(fault, DL_STAGE_KEYS, "claimed_keys writes beyond its room", "keys within the capacity", "more");
    else
      fail(fault, DL_STAGE_KEYS, "the number of claimed keys changes", "the number announced", "%u announced, then %u",
           (unsigned)announced, (unsigned)written);
    free(keys);
    return NULL;
  }
  *count = announced;
  return keys;
}

static bool distinct(const uint16_t *keys, uint32_t count, dl_plugin_fault *fault) {
  uint8_t seen[DISPATCHLAB_PLUGIN_MOST_KEYS / 8] = {0};
  for (uint32_t i = 0; i < count; ++i) {
    if (seen[keys[i] / 8] >> keys[i] % 8 & 1)
      return fail(fault, DL_STAGE_KEYS, "a key is claimed twice", "distinct keys", "%u again", (unsigned)keys[i]);
    seen[keys[i] / 8] |= (uint8_t)(1u << keys[i] % 8);
  }
  return true;
}

static bool read_keys(dl_plugin *p, dl_plugin_fault *fault) {
  uint32_t again = 0;
  p->keys = ask_keys(p, &p->key_count, fault);
  if (p->keys == NULL) return false;
  uint16_t *second = ask_keys(p, &again, fault);
  if (second == NULL) return false;
  const bool same = again == p->key_count && memcmp(p->keys, second, again * sizeof *second) == 0;
  free(second);
  if (!same)
    return fail(fault, DL_STAGE_KEYS, "the claimed keys change between calls", "the same keys every time",
                "%u keys, then %u%s", (unsigned)p->key_count, (unsigned)again, again == p->key_count ? " others" : "");
  return distinct(p->keys, p->key_count, fault);
}

static void enter(const dl_plugin_watch *watch, dl_plugin_stage stage) {
  if (watch != NULL) watch->enter(watch->context, stage);
}

/* Maps the library and finds its entry point. */
static bool map(const char *path, dl_plugin *out, dispatchlab_plugin_entry_fn *entry, dl_plugin_fault *fault) {
  if (strchr(path, '/') == NULL)
    return fail(fault, DL_STAGE_LOAD, "a bare name would be searched for", "a path with a slash in it", "%s", path);
  out->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (out->library == NULL)
    return fail(fault, DL_STAGE_LOAD, "the dynamic linker refuses the library", "a library that can be loaded", "%s", dlerror());
  void *symbol = dlsym(out->library, DISPATCHLAB_PLUGIN_SYMBOL);
  if (symbol == NULL)
    return fail(fault, DL_STAGE_ENTRY, "there is no entry point", DISPATCHLAB_PLUGIN_SYMBOL, "none");
  memcpy(entry, &symbol, sizeof symbol); /* ISO C has no cast from an object's to a function's pointer */
  return true;
}

bool dl_plugin_open(const char *path, uint32_t host_level, const dl_plugin_watch *watch, dl_plugin *out, dl_plugin_fault *fault) {
  memset(out, 0, sizeof *out);
  memset(fault, 0, sizeof *fault);
  enter(watch, DL_STAGE_LOAD);
  dispatchlab_plugin_entry_fn entry;
  if (!map(path, out, &entry, fault)) return false;
  enter(watch, DL_STAGE_ENTRY);
  const dispatchlab_plugin *theirs = entry(host_level);
  if (theirs == NULL) return fail(fault, DL_STAGE_ENTRY, "the entry point returns no table", "a table", "NULL");
  enter(watch, DL_STAGE_PREFIX);
  if (!copy_table(theirs, host_level, out, fault)) return false;
  enter(watch, DL_STAGE_KEYS);
  if (read_keys(out, fault)) return true;
  dl_plugin_release(out);
  return false;
}

void dl_plugin_release(dl_plugin *plugin) {
  free(plugin->keys);
  plugin->keys = NULL;
}

bool dl_instance_create(const dl_plugin *plugin, dl_instance *out, dl_plugin_fault *fault) {
  memset(fault, 0, sizeof *fault);
  *out = (dl_instance){.plugin = plugin};
  const int32_t status = plugin->table.create(&out->instance);
  if (status == DISPATCHLAB_OK) return true;
  return fail(fault, DL_STAGE_CREATE, "create makes no instance", "DISPATCHLAB_OK (0)", "%d", (int)status);
}

void dl_instance_destroy(dl_instance *instance) {
  instance->plugin->table.destroy(instance->instance);
}

/* The object is const to every arm, its instance is not: the counts of failures are the adapter's own. */
static dl_result answer(dl_instance *it, const dispatchlab_view *view) {
  dl_result result = DL_UNMATCHED;
  const int32_t status = it->plugin->table.process(it->instance, view, &result);
  if (DL_LIKELY(status == DISPATCHLAB_OK)) return result;
  ++it->failures;
  it->unknown += status != DISPATCHLAB_FAILED;
  return DL_UNMATCHED;
}

dl_result dl_instance_process(const dl_handler *self, const dl_packet *packet) {
  const dispatchlab_view view = dl_view_of(packet);
  return answer(self->state, &view);
}

bool dl_instance_matches(const dl_handler *self, const dl_packet *packet) {
  if (packet->key != self->key) return false;
  const dl_instance *it = self->state;
  const dispatchlab_view view = dl_view_of(packet);
  return it->plugin->table.matches(it->instance, &view) == DISPATCHLAB_MATCH;
}

enum { LARGEST_BATCH = 1024 };

void dl_instance_run(dl_instance *it, const dl_packet *packets, size_t n, size_t batch, dl_result *results) {
  dispatchlab_view views[LARGEST_BATCH];
  const bool batched = batch > 0 && it->plugin->table.process_batch != NULL;
  if (batch == 0 || batch > LARGEST_BATCH) batch = LARGEST_BATCH;
  for (size_t done = 0; done < n; done += batch) {
    const size_t count = n - done < batch ? n - done : batch;
    for (size_t i = 0; i < count; ++i) views[i] = dl_view_of(&packets[done + i]);
    const dispatchlab_batch b = {views, sizeof *views, results + done, sizeof *results, count};
    if (batched && it->plugin->table.process_batch(it->instance, &b) == DISPATCHLAB_OK) continue;
    for (size_t i = 0; i < count; ++i) results[done + i] = answer(it, &views[i]);
  }
}
