/* Sets of handlers: objects in one array, the list in registration order, and the reference that every arm must equal. */
#include "handlers.h"

#include <stdlib.h>
#include <string.h>

#include "stamp.h"

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
    h->vtable = &set->vtables[i];
    h->index = i;
    h->key = spec->keys[i];
    h->coded_key = (uint16_t)(spec->keys[i] ^ DL_KEY_CODE(i));
    h->mask = spec->masks[i];
    h->value = spec->values[i];
  }
  for (uint32_t i = set->stamped; i < spec->count; ++i) {
    const dl_foreign *f = &spec->foreign[i - set->stamped];
    set->handlers[i].process = f->process;
    if (f->matches != NULL) set->handlers[i].matches = f->matches;
  }
  for (uint32_t i = 0; i < spec->count; ++i)
    for (uint32_t j = 0; j < spec->count; ++j)
      if (i != j && overlap(&set->handlers[i], &set->handlers[j])) set->handlers[i].overlaps = true;
}

#define PAGE 4096u

static uint32_t round_up(uint32_t bytes) {
  return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Where a scattered object i lies on its page: any line, so that not all fall on the same sets of the caches. */
static size_t line_of(uint32_t i) {
  return i * 2654435761u % (PAGE / DL_CACHE_LINE) * DL_CACHE_LINE;
}

/* Gives every handler its place and its state. Scattered: a page for each object and whole pages for each state, dealt out to the
 * handlers in steps of a prime, so that neighbours by number are no neighbours in memory. */
static void place(dl_handler_set *set, const dl_handler_spec *spec) {
  const size_t stride = spec->scattered ? PAGE + round_up(spec->state) : spec->state;
  const uint32_t step = set->count % 389u == 0 ? 1 : 389u; /* without a common divisor: every place once */
  for (uint32_t i = 0; i < set->count; ++i) {
    dl_handler *h = &set->handlers[i];
    char *at = (char *)set->heap + (spec->scattered ? i * step % set->count : i) * stride;
    if (spec->scattered) {
      set->objects[i] = (dl_handler *)(void *)(at + line_of(i));
      at += spec->state < PAGE ? PAGE + line_of(i + 1) / DL_CACHE_LINE * spec->state % PAGE : PAGE;
    } else {
      set->objects[i] = h;
    }
    h->state = spec->state > 0 ? at : (char *)&set->objects[i]->own;
    h->state_mask = spec->state > 0 ? spec->state / (uint32_t)sizeof(uint64_t) - 1 : 0;
    if (i >= set->stamped) h->state = spec->foreign[i - set->stamped].state;
    if (spec->scattered) *set->objects[i] = *h;
  }
  for (uint32_t i = 0; i < set->count; ++i) {
    set->vtables[i] = (dl_vtable){set->handlers[i].matches, set->handlers[i].process};
    set->list[i] = set->objects[spec->order[i]];
  }
}

static bool may_have_state(uint32_t bytes) {
  return bytes == 0 || (bytes >= sizeof(uint64_t) && bytes <= DL_MOST_STATE && (bytes & (bytes - 1)) == 0);
}

static bool allocate(dl_handler_set *set, const dl_handler_spec *spec) {
  const size_t each = spec->scattered ? PAGE + round_up(spec->state) : spec->state;
  const size_t heap = (spec->count * each + PAGE) / PAGE * PAGE;
  set->handlers = aligned_alloc(DL_CACHE_LINE, spec->count * sizeof(dl_handler));
  set->objects = malloc(spec->count * sizeof *set->objects);
  set->list = malloc(spec->count * sizeof *set->list);
  set->vtables = malloc(spec->count * sizeof *set->vtables);
  set->heap = aligned_alloc(PAGE, heap);
  if (set->heap != NULL) memset(set->heap, 0, heap);
  return set->handlers != NULL && set->objects != NULL && set->list != NULL && set->vtables != NULL && set->heap != NULL;
}

dl_status dl_handler_set_create(const dl_handler_spec *spec, dl_handler_set **out) {
  if (spec->stamp == NULL || spec->count < 1 || spec->count > DL_MAX_HANDLERS || spec->foreign_count > spec->count)
    return DL_BAD_ARGUMENT;
  if (!is_permutation(spec->order, spec->count) || !can_accept(spec) || !may_have_state(spec->state)) return DL_BAD_ARGUMENT;
  dl_handler_set *set = calloc(1, sizeof *set);
  if (set == NULL) return DL_NO_MEMORY;
  set->stamp = spec->stamp;
  set->count = spec->count;
  set->state = spec->state;
  set->stamped = spec->count - spec->foreign_count;
  if (!allocate(set, spec)) {
    dl_handler_set_destroy(set);
    return DL_NO_MEMORY;
  }
  fill(set, spec);
  place(set, spec);
  *out = set;
  return DL_OK;
}

void dl_handler_set_destroy(dl_handler_set *set) {
  if (set == NULL) return;
  free(set->handlers);
  free(set->objects);
  free(set->list);
  free(set->vtables);
  free(set->heap);
  free(set);
}

void dl_handler_set_tallies(const dl_handler_set *set, uint64_t *sums) {
  for (uint32_t i = 0; i < set->count; ++i) {
    const dl_handler *h = set->objects[i];
    sums[i] = 0;
    for (uint32_t w = 0; i < set->stamped && w <= h->state_mask; ++w) sums[i] += ((const uint64_t *)h->state)[w];
  }
}

const dl_handler *dl_reference_select(const dl_handler_set *set, const dl_packet *packet) {
  for (uint32_t i = 0; i < set->count; ++i) {
    const dl_handler *h = set->list[i];
    if (packet->key == h->key && (packet->payload[0] & h->mask) == h->value) return h;
  }
  return NULL;
}
