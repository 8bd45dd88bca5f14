/* Handlers: the stamped code, and a set of them registered in a list. First match in the list wins. */
#ifndef DL_HANDLERS_H
#define DL_HANDLERS_H

#include <stdbool.h>
#include <stddef.h>

#include "compiler.h"
#include "index.h"
#include "packet.h"
#include "status.h"

/* Bytes of state that a handler may own. */
#define DL_MOST_STATE 65536u

typedef struct dl_handler dl_handler;
typedef bool (*dl_match_fn)(const dl_handler *self, const dl_packet *packet);
typedef dl_result (*dl_process_fn)(const dl_handler *self, const dl_packet *packet);

/* What a C++ class would have one of for all its objects. */
typedef struct dl_vtable {
  dl_match_fn matches;
  dl_process_fn process;
} dl_vtable;

/* One handler object: what a C++ handler with a vtable would be, in one cache line. A packet is its own when the key is
 * equal and (payload[0] & mask) == value; mask 0 means that the key alone decides. */
struct dl_handler {
  dl_match_fn matches;
  dl_process_fn process;
  void *state;              /* what body tally changes; &own where the set has no state */
  const dl_vtable *vtable;  /* arm virtual calls through it, the others through `process` */
  uint64_t own;
  uint32_t state_mask;      /* words of the state, less one */
  uint32_t index;           /* the handler's number: which stamped code it runs */
  uint16_t key;       /* the declared key */
  uint16_t coded_key; /* the key as this handler's predicate compares it, see predicate.inc */
  uint8_t mask;
  uint8_t value;
  bool overlaps; /* some packet is accepted by this and by another handler, so their order is behaviour */
  uint8_t unused[DL_CACHE_LINE - 4 * sizeof(void *) - 23];
};

_Static_assert(sizeof(struct dl_handler) == DL_CACHE_LINE, "one handler object, one cache line");

/* The stamped code of one body at one size, by handler number. */
typedef struct dl_stamp {
  const char *body;
  const char *size;
  uint32_t rounds;
  dl_process_fn process[DL_MAX_HANDLERS];
  dl_match_fn matches[DL_MAX_HANDLERS]; /* each next to its body ("spread") */
} dl_stamp;

/* Every stamp that was built, ended by NULL. */
extern const dl_stamp *const dl_stamps[];

/* The predicates next to each other ("packed"), by handler number. */
extern const dl_match_fn dl_packed_predicates[DL_MAX_HANDLERS];

/* A handler that came from outside: its own code instead of stamped code. matches may be NULL: the key alone decides. */
typedef struct dl_foreign {
  dl_process_fn process;
  dl_match_fn matches;
  void *state;
} dl_foreign;

/* What a set is made of. Arrays have `count` entries; keys, masks and values are by handler number, order[i] is the number
 * of the handler at place i of the list. */
typedef struct dl_handler_spec {
  const dl_stamp *stamp;
  uint32_t count;
  bool packed;
  const uint16_t *keys;
  const uint8_t *masks;
  const uint8_t *values;
  const int32_t *order;
  uint32_t state; /* bytes of its own for each handler: 0, or a power of two from 8 on */
  bool scattered; /* objects and states each on a page of their own, in shuffled order, instead of side by side */
  const dl_foreign *foreign; /* of the last foreign_count handlers by number */
  uint32_t foreign_count;
} dl_handler_spec;

typedef struct dl_handler_set {
  const dl_stamp *stamp;
  uint32_t count;
  dl_handler *handlers; /* by number; what is called is objects[i], the same one unless the objects are scattered */
  dl_handler **objects; /* by number */
  dl_handler **list;    /* in the order they were registered */
  dl_vtable *vtables;   /* by number */
  void *heap;           /* states, and scattered objects */
  uint32_t state;       /* bytes of each state */
  uint32_t stamped;     /* handlers below this number run stamped code, the others came from outside */
} dl_handler_set;

/* Finds a stamp by name; NULL when that body or size was not built. */
const dl_stamp *dl_stamp_find(const char *body, const char *size);

/* Builds a set. DL_BAD_ARGUMENT when count is outside 1..DL_MAX_HANDLERS, order is not a permutation, or a value has a bit
 * that its mask has not, or the state is not of a size that can be. */
dl_status dl_handler_set_create(const dl_handler_spec *spec, dl_handler_set **out);
void dl_handler_set_destroy(dl_handler_set *set);

/* What each handler has added to its state so far, by number: sums[count]. Arms that keep copies give them back when destroyed. */
void dl_handler_set_tallies(const dl_handler_set *set, uint64_t *sums);

/* The brief's loop, untimed, as plain as it can be: every arm is held against it. Returns NULL when nothing matches. */
const dl_handler *dl_reference_select(const dl_handler_set *set, const dl_packet *packet);

#endif
