/* The interface of an arm: one complete way to find a handler and to call it.
 *
 * To add one: write arms/<name>.c (a state, prepare(), dispatch(), then #include "arm_loop.inc") and add its line to
 * arms.def. Nothing of this interface is inside a timed loop: the loops are stamped with dispatch() inlined. */
#ifndef DL_ARM_H
#define DL_ARM_H

#include "checksum.h"
#include "clock.h"
#include "handlers.h"

/* Every timed loop is stamped this often, each time at another offset within its cache line and page (arm_loop.inc). */
#define DL_PLACEMENTS 4

typedef struct dl_loops {
  /* Runs n packets and returns the checksum over their results. */
  uint64_t (*timed[DL_PLACEMENTS])(void *state, const dl_packet *packets, size_t n);
  /* The same, untimed; probes[i] receives the predicate calls of packet i. */
  uint64_t (*count)(void *state, const dl_packet *packets, size_t n, uint32_t *probes);
  /* The same; reads the clock around packet i whenever i % stride == phase and stores the ticks. Returns the checksum.
   * ticks holds (n - phase + stride - 1) / stride entries. */
  uint64_t (*sample)(void *state, const dl_packet *packets, size_t n, size_t stride, size_t phase, int64_t *ticks);
  /* The same; stores every result: how tests compare packet for packet. */
  void (*results)(void *state, const dl_packet *packets, size_t n, dl_result *results);
} dl_loops;

/* What an arm must answer. */
typedef enum dl_answers {
  DL_ANSWERS_LIST,  /* what the first match in the list answers */
  DL_ANSWERS_HANDLER_0, /* what handler number 0 makes of every packet: no selection */
  DL_ANSWERS_KEY,       /* the packet's own key: the loop floor, no handler at all */
  DL_ANSWERS_KEY_SERIAL /* the same, fed to dl_fnv1a */
} dl_answers;

typedef struct dl_arm_setup {
  const dl_handler_set *set;
  const uint64_t *frequency; /* packets each handler (by number) receives; arms that do not order ignore it */
} dl_arm_setup;

typedef struct dl_prepared {
  void *state;
  void (*destroy)(void *state);
  const dl_loops *loops;
  size_t footprint; /* bytes of the data structure that selection reads; handlers not counted */
  const char *why;  /* one line with DL_NOT_ALLOWED; NULL: the arm's description says it */
} dl_prepared;

typedef struct dl_arm {
  const char *name;
  const char *family;    /* control, scan, table, ... */
  const char *guarantee; /* what order the arm keeps */
  const char *description;
  dl_answers answers;
  /* Builds the arm's own data. DL_NOT_ALLOWED when it cannot hold such a set. */
  dl_status (*prepare)(const dl_arm_setup *setup, dl_prepared *out);
} dl_arm;

/* Every arm, in the order of arms.def, ended by NULL. */
extern const dl_arm *const dl_arms[];

const dl_arm *dl_arm_find(const char *name);

/* Counts a probe where the loop asks for it; `probes` is a constant NULL in the timed loop, so nothing is left there. */
DL_INLINE void dl_probe(uint32_t *probes) {
  if (probes != NULL) ++*probes;
}

#endif
