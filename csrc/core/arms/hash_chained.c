/* hash-chained: what the containers of standard libraries are: a prime number of buckets, each a chain of nodes that were allocated one
 * by one. The answer to "why not simply a map": a division and two loads that wait for each other before the key can be compared. */
#include <stdlib.h>

#include "compact.h"

typedef struct node {
  struct node *next;
  dl_compact_slot slot;
} node;

typedef struct chained {
  node **buckets;
  size_t count;
  dl_compact calls; /* holds the candidates alone */
} chained;

/* No more nodes than buckets, as usual; the largest is beyond the most keys. */
static const uint32_t primes[] = {13, 29, 59, 127, 257, 541};

DL_INLINE dl_result dispatch(const chained *state, const dl_packet *packet, uint32_t *probes) {
  const int32_t key = packet->key;
  for (const node *n = state->buckets[packet->key % (uint32_t)state->count]; n != NULL; n = n->next)
    if (n->slot.key == key) return dl_compact_call(&state->calls, &n->slot, packet, probes);
  return DL_UNMATCHED;
}

#define DL_ARM_STATE chained
#include "arm_loop.inc"

static void destroy(void *opaque) {
  chained *state = opaque;
  for (size_t i = 0; state->buckets != NULL && i < state->count; ++i)
    for (node *n = state->buckets[i], *next; n != NULL; n = next) {
      next = n->next;
      free(n);
    }
  free(state->buckets);
  dl_compact_free(&state->calls);
  free(state);
}

static bool fill(chained *state, const dl_key_index *index) {
  for (size_t i = 0; i < index->key_count; ++i) {
    node *n = malloc(sizeof *n);
    if (n == NULL) return false;
    node **bucket = &state->buckets[index->entries[i].key % state->count];
    *n = (node){*bucket, dl_compact_slot_of(&index->entries[i])};
    *bucket = n;
  }
  return true;
}

static dl_status prepare(const dl_arm_setup *setup, dl_prepared *out) {
  dl_key_index index;
  const dl_status status = dl_key_index_build(setup->set, &index);
  if (status != DL_OK) return status;
  chained *state = calloc(1, sizeof *state);
  if (state == NULL) {
    dl_key_index_free(&index);
    return DL_NO_MEMORY;
  }
  const uint32_t *prime = primes;
  while (*prime < index.key_count) ++prime;
  state->count = *prime;
  state->calls.candidates = index.candidates;
  index.candidates = NULL; /* now the state's */
  state->buckets = calloc(state->count, sizeof *state->buckets);
  const bool whole = state->buckets != NULL && fill(state, &index);
  const size_t bytes = state->count * sizeof(node *) + index.key_count * sizeof(node) + index.candidate_count * sizeof(dl_handler *);
  dl_key_index_free(&index);
  if (!whole) {
    destroy(state);
    return DL_NO_MEMORY;
  }
  *out = (dl_prepared){state, destroy, &loops, bytes, NULL};
  return DL_OK;
}

extern const dl_arm dl_arm_hash_chained;
const dl_arm dl_arm_hash_chained = {
    .name = "hash-chained",
    .family = "table",
    .guarantee = "first match in registration order",
    .description = "a hash table with a prime number of buckets and chains of single nodes, as standard containers are",
    .answers = DL_ANSWERS_LIST,
    .prepare = prepare,
};
