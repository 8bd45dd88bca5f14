/* The ledger of a round: what happened to the measuring thread and its CPU between two moments outside the timed
 * region. It flags rounds that were disturbed; it never decides that one is dropped. */
#ifndef DL_LEDGER_H
#define DL_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "status.h"

/* The first DL_LEDGER_COUNTS columns are differences of running counts. */
typedef enum dl_ledger_column {
  DL_LEDGER_VOLUNTARY,    /* context switches of the thread: it slept */
  DL_LEDGER_INVOLUNTARY,  /* context switches of the thread: it was preempted */
  DL_LEDGER_MINOR_FAULTS, /* page faults of the thread served from memory */
  DL_LEDGER_MAJOR_FAULTS, /* page faults of the thread that read a device */
  DL_LEDGER_STEAL,        /* scheduler ticks (usually 10 ms) the hypervisor ran something else on the CPU */
  DL_LEDGER_COUNTS,
  DL_LEDGER_MIGRATIONS = DL_LEDGER_COUNTS, /* 1 when the two moments saw different CPUs */
  DL_LEDGER_SKEW,                          /* ppb, |ticks against the kernel's clock - the given rate| */
  DL_LEDGER_COLUMNS
} dl_ledger_column;

/* Column names as recorded. */
extern const char *const dl_ledger_names[DL_LEDGER_COLUMNS];

/* What stays open between readings. */
typedef struct dl_ledger {
  int stat_fd;  /* /proc/stat, -1 where it cannot be read */
  int32_t cpu;  /* the CPU whose steal is read, -1 for the sum of all */
  char *text;   /* owned; room for /proc/stat up to the line of that CPU */
  size_t room;
} dl_ledger;

typedef struct dl_ledger_sample {
  int64_t counts[DL_LEDGER_COUNTS]; /* since the thread or the machine started, -1 where not available */
  int32_t cpu;                      /* where the thread is, -1 where not available */
  bool anchored;                    /* whether `anchor` could be taken */
  dl_clock_anchor anchor;
} dl_ledger_sample;

/* Prepares readings for a thread on `cpu` (-1: not pinned). DL_NO_MEMORY is the only failure: whatever the platform
 * cannot tell is -1 in every row. */
dl_status dl_ledger_open(dl_ledger *ledger, int32_t cpu);

/* Reads everything for the calling thread. Microseconds, most of them for /proc/stat, which grows with the machine. */
void dl_ledger_read(const dl_ledger *ledger, dl_ledger_sample *sample);

/* What happened from one sample to the next, -1 where not available. A skew smaller than about 50 ns over the time
 * between the samples is reading noise. */
void dl_ledger_row(const dl_ledger_sample *from, const dl_ledger_sample *to, double ticks_per_ns,
                   int64_t row[DL_LEDGER_COLUMNS]);

void dl_ledger_close(dl_ledger *ledger);

#endif
