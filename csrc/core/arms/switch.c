/* switch: a closed set as the programmer writes it. The keys are the cases of one switch and each case calls its handler by name; what
 * becomes of it, a jump table or a tree of compares, is the compiler's choice. Handlers with residual predicates, and keys that are no
 * case, are left to the compact table. It cannot admit a plugin: its handlers were all known when it was compiled. */
#include <stdlib.h>

#include "choice.h"
#include "closed.h"
#include "compact.h"

/* The key that dispatchlab gives a plain handler by default, known when this is compiled. */
#define DL_SWITCH_KEY(i) (257 + 7 * (i))

typedef struct switched {
  const dl_handler *cases[DL_CLOSED]; /* NULL: no such handler, or its key alone does not decide */
  dl_compact rest;
} switched;

typedef struct switched_loop {
  switched *set; /* too large to be copied by every loop */
} switched_loop;

#define DL_PER_STAMP "switch.inc"
#include "named.inc"

#include "named_list.inc"

static void destroy(void *opaque) {
  switched_loop *state = opaque;
  if (state->set != NULL) dl_compact_free(&state->set->rest);
  free(state->set);
  free(state);
}

/* Why it cannot hold a set, or NULL. */
static const char *refusal(const dl_handler_set *set) {
  if (set->count > DL_CLOSED) return "the set of handlers is closed: it was built over the first 128";
  for (uint32_t i = 0; i < set->count; ++i) {
    const dl_handler *h = &set->handlers[i];
    if (h->process != set->stamp->process[i]) return DL_CLOSED_REFUSES;
    if (h->mask == 0 && h->key != DL_SWITCH_KEY(i)) return "its cases were compiled for the default keys of handlers, 257 + 7 i";
  }
  return NULL;
}

static const dl_loops *loops_of(const dl_stamp *stamp) {
  for (const dl_named_loops *n = named_loops; n->stamp != NULL; ++n)
    if (n->stamp == stamp) return n->loops;
  return NULL;
}

static void fill(switched *set) {
  for (size_t i = 0; i <= set->rest.mask; ++i) {
    const dl_compact_slot *s = &set->rest.slots[i];
    if (s->key != DL_COMPACT_EMPTY && s->only != NULL) set->cases[s->only->index] = s->only;
  }
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  size_t bytes = 0;
  const dl_loops *loops = loops_of(setup->set->stamp);
  out->why = loops == NULL ? "calls handlers by name, and was built for the tiny and fat bodies only" : refusal(setup->set);
  if (out->why != NULL) return DL_NOT_ALLOWED;
  switched_loop *state = calloc(1, sizeof *state);
  if (state == NULL) return DL_NO_MEMORY;
  state->set = calloc(1, sizeof *state->set);
  const dl_status status = state->set == NULL ? DL_NO_MEMORY : dl_compact_build(setup->set, &state->set->rest, &bytes);
  if (status != DL_OK) {
    destroy(state);
    return status;
  }
  fill(state->set);
  *out = (dl_prepared){state, destroy, loops, bytes + sizeof state->set->cases, NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_switch;
const dl_arm dl_arm_switch = {
    .name = "switch",
    .family = "table",
    .guarantee = "first match in registration order",
    .description = "a switch over keys known when it was compiled, each case calls its handler by name; a closed set cannot admit a plugin",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
