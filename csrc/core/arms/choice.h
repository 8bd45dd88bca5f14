/* The selection that all mechanism arms share, so that it cancels when they are compared: the low bits of the key choose a slot of
 * a small table, the slot verifies the key and holds what the mechanism starts from. The table grows until no two registered keys
 * share a slot, 65536 slots at most, so there is nothing to walk. */
#ifndef DL_ARMS_CHOICE_H
#define DL_ARMS_CHOICE_H

#include "arm.h"
#include "stamp.h"

typedef struct dl_choice {
  void *target; /* an object, or an entry of the arm's own */
  uint16_t key; /* an empty slot holds a key that chooses another slot */
  uint16_t index;
} dl_choice;

_Static_assert(sizeof(dl_choice) == 16, "a slot is found by a shift");

typedef struct dl_choices {
  dl_choice *slots;
  size_t mask;
} dl_choices;

/* The slot of a packet, or NULL where no handler has its key. */
DL_INLINE const dl_choice *dl_choose(const dl_choices *choices, const dl_packet *packet) {
  const dl_choice *choice = &choices->slots[packet->key & choices->mask];
  return DL_LIKELY(choice->key == packet->key) ? choice : NULL;
}

/* What the state of every mechanism arm begins with. */
typedef struct dl_mechanism {
  dl_choices choices;
  void *entries;     /* the arm's own, by handler number; NULL where it has none */
  size_t entry_size;
  const dl_handler_set *set;
} dl_mechanism;

/* Builds the table over a set's list, first match first, its targets the objects; or entries of entry_size zeroed bytes each where
 * that is not 0. DL_NOT_ALLOWED for a set with residual predicates, the reason in out->why. */
dl_status dl_mechanism_prepare(const dl_arm_setup *setup, size_t entry_size, const dl_loops *loops, dl_prepared *out);

/* What an arm that calls handlers by name has of each stamp it was built for. */
typedef struct dl_named_loops {
  const dl_stamp *stamp;
  const dl_loops *loops;
} dl_named_loops;

/* The same for an arm that calls handlers by name: with its loops for the set's stamp, or DL_NOT_ALLOWED with the reason. */
dl_status dl_named_prepare(const dl_arm_setup *setup, const dl_named_loops *named, dl_prepared *out);

/* The same for an arm closed over the stamped code of handlers 0..DL_CLOSED-1. */
dl_status dl_closed_prepare(const dl_arm_setup *setup, const dl_named_loops *named, dl_prepared *out);

/* Frees what dl_mechanism_prepare() made. */
void dl_mechanism_destroy(void *mechanism);

/* Entry i of a prepared arm. */
DL_INLINE void *dl_mechanism_entry(const dl_prepared *prepared, size_t i) {
  const dl_mechanism *mechanism = prepared->state;
  return (char *)mechanism->entries + i * mechanism->entry_size;
}

#endif
