/* The machine's event counters around a piece of work of the calling thread: hardware events where the kernel and the
 * CPU give them, software events always. A counter that cannot be read has a reason, never a zero. */
#ifndef DL_COUNTERS_H
#define DL_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

typedef enum dl_counter {
  /* hardware, user mode only: the same meaning whatever the caller's privileges, and interrupts stay out */
  DL_CYCLES,
  DL_INSTRUCTIONS,
  DL_BRANCHES,
  DL_BRANCH_MISSES,
  DL_L1I_MISSES,
  DL_ITLB_MISSES,
  DL_FRONTEND_STALLS, /* cycles */
  /* software, user and kernel mode: a context switch happens in the kernel or not at all */
  DL_TASK_CLOCK, /* ns */
  DL_CONTEXT_SWITCHES,
  DL_CPU_MIGRATIONS,
  DL_PAGE_FAULTS,
  DL_COUNTERS
} dl_counter;

extern const char *const dl_counter_names[DL_COUNTERS];

/* Why a counter has no value: 0 (it has one), an errno, or one of these. */
enum { DL_WHY_UNPINNED_HYBRID = -1, DL_WHY_NEVER_SCHEDULED = -2 };

/* Opens one event of the calling thread, stopped when it is its own leader (leader == -1); a descriptor, or -1 with
 * errno. dl_event_open() asks the kernel; another function may stand in to see how refusals are met. */
typedef int (*dl_event_open_fn)(uint32_t type, uint64_t config, bool user_only, int leader);
int dl_event_open(uint32_t type, uint64_t config, bool user_only, int leader);

typedef enum dl_counter_source {
  DL_FROM_NOWHERE,   /* no value; `why` tells the reason */
  DL_FROM_PERF,      /* perf_event_open */
  DL_FROM_ACCOUNTING /* perf_event_open refused a software event: getrusage and the thread's CPU clock tell the same */
} dl_counter_source;

typedef struct dl_counter_reading {
  int64_t value;      /* scaled by enabled / running when the event shared its counter; -1 when there is none */
  int64_t enabled_ns; /* how long the event was wanted while the thread ran */
  int64_t running_ns; /* how long it was counting */
  dl_counter_source source;
  int why;
} dl_counter_reading;

typedef struct dl_counters {
  int fd[DL_COUNTERS];     /* -1 where not open */
  int leader[DL_COUNTERS]; /* the counter that leads this one's group; itself when alone */
  int why[DL_COUNTERS];
  dl_counter_reading base[DL_COUNTERS]; /* unscaled, at the last start: a reset would leave the times running */
  dl_counter_reading last[DL_COUNTERS]; /* unscaled, at the last stop */
} dl_counters;

/* Opens what can be opened for the calling thread, pinned to `cpu` (-1: not pinned, which on a CPU of several core
 * kinds leaves the hardware events without a meaning). Never fails: see why[]. */
void dl_counters_open(dl_counters *counters, int32_t cpu, dl_event_open_fn open);

/* Start and stop on the thread that opened; a second start begins from zero. Read tells what happened between the last
 * two of them. */
void dl_counters_start(dl_counters *counters);
void dl_counters_stop(dl_counters *counters);
void dl_counters_read(const dl_counters *counters, dl_counter_reading readings[DL_COUNTERS]);
void dl_counters_close(dl_counters *counters);

/* Writes why a counter has no value as part of a line of text, "" for 0. `paranoid` is the kernel's
 * perf_event_paranoid, or DL_PARANOID_UNKNOWN. */
enum { DL_PARANOID_UNKNOWN = INT32_MIN };
int dl_counters_paranoid(void);
void dl_counters_reason(int why, int paranoid, char *text, size_t room);

/* What to add to the config of a hardware event so that the PMU of `cpu` counts it: that PMU's type in the upper half
 * (Linux 5.13), or 0 where all cores are of one kind. `devices` is a folder like /sys/bus/event_source/devices.
 * Returns 0 or a reason as in why[]. */
int dl_counters_pmu(const char *devices, int32_t cpu, uint64_t *choice);

#endif
