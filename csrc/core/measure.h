/* The timing loop: rounds in which every slot runs one block, in a given order, with a ledger beside each round. */
#ifndef DL_MEASURE_H
#define DL_MEASURE_H

#include "arm.h"
#include "ledger.h"

/* One arm over one handler set and one traffic. Slots with the same packets must give the same checksums. */
typedef struct dl_slot {
  const dl_loops *loops;
  void *state;
  const dl_packet *packets;
  size_t packet_count;
  const uint64_t *expected; /* checksum of each window, see dl_expected_checksums() */
  int64_t delay_ppm;        /* makes the block longer by this share of itself: a known difference to detect */
} dl_slot;

/* Called between blocks, outside of everything timed. False asks the loop to stop. */
typedef bool (*dl_hook)(void *context, size_t rounds_done);

typedef struct dl_plan {
  const dl_slot *slots;
  size_t slot_count;
  size_t block;             /* packets per block, the same for every slot; a multiple of any smaller pool */
  size_t rounds;
  const int16_t *order;     /* [rounds][slot_count]: the slot at each position */
  const int8_t *placement;  /* [rounds]: which copy of the loops runs */
  const int32_t *window;    /* [rounds]: which block of its packets each slot runs, modulo its windows */
  const int32_t *shift;     /* [slot_count]: added to window; keeps slots of the same code off each other's packets */
  size_t lead;              /* packets run untimed before every block: those that come before it in the pool */
  int32_t cpu;              /* pinned there already; -1 when not pinned */
  double ticks_per_ns;
  dl_hook hook;             /* may be NULL */
  void *context;
} dl_plan;

typedef struct dl_measured {
  size_t rounds_done;
  int64_t *ticks;      /* [rounds][slot_count], by slot and not by position */
  int64_t *undelayed;  /* the same before slots were made longer on purpose: what was really added */
  int64_t *ledger;     /* [rounds][DL_LEDGER_COLUMNS] */
  int64_t *mismatches; /* [slot_count]: blocks whose checksum was not the expected one */
} dl_measured;

/* Runs the plan on the calling thread. DL_STOPPED: the hook said so; whole rounds done before that are kept. */
dl_status dl_measure(const dl_plan *plan, dl_measured *out);

/* The checksum that each window of `chunk` packets must give, by the reference scan: expected[packet_count / chunk]. */
void dl_expected_checksums(const dl_handler_set *set, dl_answers answers, const dl_packet *packets, size_t packet_count,
                           size_t chunk, uint64_t *expected);

/* What the reference answers for each packet: the handler's number or -1, and its result. Either may be NULL. */
void dl_reference_results(const dl_handler_set *set, dl_answers answers, const dl_packet *packets, size_t n,
                          int32_t *selected, dl_result *results);

#endif
