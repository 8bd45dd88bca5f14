/* table-direct16: the key is the index. 65536 slots of 16 bytes, a mebibyte, most of them empty. */
#include <stdlib.h>

#include "table.h"

typedef struct slot {
  dl_handler *only;
  uint32_t begin;
  uint16_t count;
} slot;

_Static_assert(sizeof(slot) == 16, "the published slot size");

typedef struct direct16 {
  slot *slots;
  dl_handler **candidates;
} direct16;

DL_INLINE dl_result dispatch(const direct16 *table, const dl_packet *packet, uint32_t *probes) {
  const slot *s = &table->slots[packet->key];
  if (DL_LIKELY(s->only != NULL)) return s->only->process(s->only, packet);
  return dl_candidates_dispatch(table->candidates + s->begin, s->count, packet, probes);
}

#define DL_ARM_STATE direct16
#include "arm_loop.inc"

static void destroy(void *opaque) {
  direct16 *table = opaque;
  free(table->slots);
  free(table->candidates);
  free(table);
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  dl_key_index index;
  dl_status status = dl_key_index_build(setup->set, &index);
  if (status != DL_OK) return status;
  direct16 *table = calloc(1, sizeof *table);
  slot *slots = calloc(65536, sizeof *slots);
  if (table == NULL || slots == NULL) {
    free(table);
    free(slots);
    dl_key_index_free(&index);
    return DL_NO_MEMORY;
  }
  for (size_t i = 0; i < index.key_count; ++i) {
    const dl_key_entry *e = &index.entries[i];
    slots[e->key] = (slot){e->only, e->begin, e->count};
  }
  *table = (direct16){slots, index.candidates};
  index.candidates = NULL; /* now the table's */
  *out = (dl_prepared){table, destroy, &loops, 65536 * sizeof(slot) + index.candidate_count * sizeof(dl_handler *), NULL};
  dl_key_index_free(&index);
  return DL_OK;
}

extern const dl_arm dl_arm_table_direct16;
const dl_arm dl_arm_table_direct16 = {
    .name = "table-direct16",
    .family = "table",
    .guarantee = "first match in registration order",
    .description = "one slot for each of the 65536 keys, indexed by the key itself",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
