/* The 512 predicates next to each other: the layout in which a scan touches the fewest lines of code. */
#include "stamp.h"

#define DL_PREDICATE(i) DL_CAT(dl_packed_match_, i)
#include "predicate.inc"

#define DECLARE(i) bool DL_PREDICATE(i)(const dl_handler *self, const dl_packet *packet);
#define LIST(i) DL_PREDICATE(i),

DL_FOR_EACH_INDEX(DECLARE)
DL_FOR_EACH_INDEX(DL_PREDICATE_STAMP)

const dl_match_fn dl_packed_predicates[DL_MAX_HANDLERS] = {DL_FOR_EACH_INDEX(LIST)};
