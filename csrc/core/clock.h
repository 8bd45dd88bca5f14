/* The clock of the timing loop: the cheapest counter of the CPU that may be read from user space, kept in order with
 * the code around it, and what has to be known about it before its readings mean anything. */
#ifndef DL_CLOCK_H
#define DL_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* A reading in ticks. Only differences have a meaning, and `(int64_t)(end - begin)` is negative when the source
 * stepped back. Both primitives fence on both sides: without the first fence RDTSC runs ahead of unfinished work,
 * without the second the work after it starts before the reading (Intel SDM vol. 2, RDTSC). AMD's LFENCE orders
 * execution too, in the mode every current kernel selects at boot (MSR C001_1029h bit 1). */
#if defined(__x86_64__)

static inline uint64_t dl_ticks_begin(void) {
  uint32_t low, high;
  __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
  return (uint64_t)high << 32 | low;
}

static inline uint64_t dl_ticks_end(void) {
  uint32_t low, high;
  __asm__ volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high) : : "rcx", "memory");
  return (uint64_t)high << 32 | low;
}

#elif defined(__aarch64__)

static inline uint64_t dl_ticks_begin(void) {
  uint64_t ticks;
  __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
  return ticks;
}

static inline uint64_t dl_ticks_end(void) { return dl_ticks_begin(); }

#else

uint64_t dl_clock_now_ns(void);
static inline uint64_t dl_ticks_begin(void) { return dl_clock_now_ns(); }
static inline uint64_t dl_ticks_end(void) { return dl_clock_now_ns(); }

#endif

/* One moment by two clocks: ticks, and the kernel's clock that nobody adjusts. */
typedef struct dl_clock_anchor {
  uint64_t ticks;
  int64_t ns;
} dl_clock_anchor;

/* What a sequence of readings says of its source. */
typedef struct dl_clock_steps {
  int64_t smallest; /* ticks, the smallest step that is not zero; 0 when none moved */
  int64_t backward; /* ticks, the largest step back; 0 when there was none */
} dl_clock_steps;

typedef struct dl_clock_info {
  const char *source;
  bool steady;          /* keeps its rate when the CPU changes frequency or sleeps */
  dl_clock_steps steps; /* of back-to-back readings: resolution or reading time, whichever is larger */
  int64_t cost;         /* ticks between a begin and an end with nothing between them, median; -1: not measured */
  double ticks_per_ns;
} dl_clock_info;

/* The source's name as recorded: "tsc", "cntvct" or "monotonic". */
const char *dl_clock_name(void);

/* Fills *info in about 20 ms of reading. DL_NOT_SUPPORTED: the CPU lacks RDTSCP. DL_OS_ERROR: the kernel's clock
 * cannot be read (errno), or the source stepped back or stood still (info->steps says which). */
dl_status dl_clock_calibrate(dl_clock_info *info);

/* The steps between `count` readings in the order they were taken. */
dl_clock_steps dl_clock_steps_of(const uint64_t *readings, size_t count);

/* Takes the tightest of several bracketed pairs. DL_OS_ERROR: the kernel's clock cannot be read. */
dl_status dl_clock_anchor_take(dl_clock_anchor *anchor);

/* Ticks per nanosecond between two anchors, 0 when the kernel's clock did not move forward. */
double dl_clock_rate(dl_clock_anchor from, dl_clock_anchor to);

#endif
