/* Sets of handlers: objects in one array, the list in registration order, and the reference that every arm must equal. */
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

#include "stamp.h"

#define DL_STAMP(body, size) extern const dl_stamp dl_stamp_##body##_##size;
#include "stamps.def"
#undef DL_STAMP

const dl_stamp *const dl_stamps[] = {
#define DL_STAMP(body, size) &dl_stamp_##body##_##size,
#include "stamps.def"
#undef DL_STAMP
    NULL,
};

const dl_stamp *dl_stamp_find(const char *body, const char *size) {
  for (const dl_stamp *const *s = dl_stamps; *s != NULL; ++s)
    if (strcmp((*s)->body, body) == 0 && strcmp((*s)->size, size) == 0) return *s;
  return NULL;
}

static bool is_permutation(const int32_t *order, uint32_t count) {
  bool seen[DL_MAX_HANDLERS] = {false};
  for (uint32_t i = 0; i < count; ++i) {
    if (order[i] < 0 || (uint32_t)order[i] >= count || seen[order[i]]) return false;
    seen[order[i]] = true;
  }
  return true;
}

/* A value with a bit outside its mask can never be seen: no packet would be accepted, and "mask 0: the key alone decides"
 * would not be true of it. */
static bool can_accept(const dl_handler_spec *spec) {
  for (uint32_t i = 0; i < spec->count; ++i)
    if (spec->values[i] & ~spec->masks[i]) return false;
  return true;
}

/* Two handlers overlap when their keys are equal and no bit that both test tells them apart. */
static bool overlap(const dl_handler *a, const dl_handler *b) {
  return a->key == b->key && ((a->value ^ b->value) & a->mask & b->mask) == 0;
}

static void fill(dl_handler_set *set, const dl_handler_spec *spec) {
  for (uint32_t i = 0; i < spec->count; ++i) {
    dl_handler *h = &set->handlers[i];
    memset(h, 0, sizeof *h);
    h->matches = spec->packed ? dl_packed_predicates[i] : spec->stamp->matches[i];
    h->process = spec->stamp->process[i];
    h->index = i;
    h->key = spec->keys[i];
    h->coded_key = (uint16_t)(spec->keys[i] ^ DL_KEY_CODE(i));
    h->mask = spec->masks[i];
    h->value = spec->values[i];
  }
  for (uint32_t i = 0; i < spec->count; ++i)
    for (uint32_t j = 0; j < spec->count; ++j)
      if (i != j && overlap(&set->handlers[i], &set->handlers[j])) set->handlers[i].overlaps = true;
  for (uint32_t i = 0; i < spec->count; ++i) set->list[i] = &set->handlers[spec->order[i]];
}

dl_status dl_handler_set_create(const dl_handler_spec *spec, dl_handler_set **out) {
  if (spec->stamp == NULL || spec->count < 1 || spec->count > DL_MAX_HANDLERS) return DL_BAD_ARGUMENT;
  if (!is_permutation(spec->order, spec->count) || !can_accept(spec)) return DL_BAD_ARGUMENT;
  dl_handler_set *set = calloc(1, sizeof *set);
  if (set == NULL) return DL_NO_MEMORY;
  set->stamp = spec->stamp;
  set->count = spec->count;
  set->handlers = aligned_alloc(DL_CACHE_LINE, spec->count * sizeof(dl_handler));
  set->list = malloc(spec->count * sizeof *set->list);
  if (set->handlers == NULL || set->list == NULL) {
    dl_handler_set_destroy(set);
    return DL_NO_MEMORY;
  }
  fill(set, spec);
  *out = set;
  return DL_OK;
}

void dl_handler_set_destroy(dl_handler_set *set) {
  if (set == NULL) return;
  free(set->handlers);
  free(set->list);
  free(set);
}

const dl_handler *dl_reference_select(const dl_handler_set *set, const dl_packet *packet) {
  for (uint32_t i = 0; i < set->count; ++i) {
    const dl_handler *h = set->list[i];
    if (packet->key == h->key && (packet->payload[0] & h->mask) == h->value) return h;
  }
  return NULL;
}
