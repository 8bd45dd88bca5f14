/* What must be known of the clock before it is trusted: its name, rate, resolution and cost, and that it never steps
 * back. */
#include "clock.h"

#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* CLOCK_MONOTONIC is slewed by time synchronisation; the raw one is not, where it exists. */
#if defined(CLOCK_MONOTONIC_RAW)
static const clockid_t kernel_clock = CLOCK_MONOTONIC_RAW;
#else
static const clockid_t kernel_clock = CLOCK_MONOTONIC;
#endif

/* MOST_BATCHES ends a calibration against a kernel clock that stands still, as under a tool that fakes the time. */
enum { READINGS = 2048, BRACKETS = 16, MOST_BATCHES = 20000 };
static const int64_t calibration_ns = 20 * 1000 * 1000;

static bool kernel_ns(int64_t *ns) {
  struct timespec now;
  if (clock_gettime(kernel_clock, &now) != 0) return false;
  *ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  return true;
}

#if defined(__x86_64__)

const char *dl_clock_name(void) { return "tsc"; }

static bool readable(void) {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (d & 1u << 27); /* RDTSCP */
}

static bool steady(void) {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8); /* invariant TSC */
}

#elif defined(__aarch64__)

const char *dl_clock_name(void) { return "cntvct"; }
static bool readable(void) { return true; }
static bool steady(void) { return true; } /* a system counter, by the architecture */

#else

const char *dl_clock_name(void) { return "monotonic"; }
static bool readable(void) { return true; }
static bool steady(void) { return true; }

uint64_t dl_clock_now_ns(void) {
  int64_t ns = 0;
  return kernel_ns(&ns) ? (uint64_t)ns : 0;
}

#endif

dl_status dl_clock_anchor_take(dl_clock_anchor *anchor) {
  uint64_t tightest = UINT64_MAX;
  for (int i = 0; i < BRACKETS; ++i) {
    int64_t ns;
    const uint64_t before = dl_ticks_begin();
    if (!kernel_ns(&ns)) return DL_OS_ERROR;
    const uint64_t width = dl_ticks_begin() - before;
    if (width < tightest || i == 0) { /* a step back is a huge width, and so never the tightest */
      tightest = width;
      *anchor = (dl_clock_anchor){.ticks = before + width / 2, .ns = ns};
    }
  }
  return DL_OK;
}

double dl_clock_rate(dl_clock_anchor from, dl_clock_anchor to) {
  if (to.ns <= from.ns) return 0.0;
  return (double)(int64_t)(to.ticks - from.ticks) / (double)(to.ns - from.ns);
}

dl_clock_steps dl_clock_steps_of(const uint64_t *readings, size_t count) {
  dl_clock_steps steps = {0, 0};
  for (size_t i = 1; i < count; ++i) {
    const int64_t step = (int64_t)(readings[i] - readings[i - 1]);
    if (step > 0 && (steps.smallest == 0 || step < steps.smallest)) steps.smallest = step;
    if (step < 0 && -step > steps.backward) steps.backward = -step;
  }
  return steps;
}

/* Adds the steps of one more batch of back-to-back readings. */
static void observe(dl_clock_steps *seen) {
  uint64_t readings[READINGS];
  for (size_t i = 0; i < READINGS; ++i) readings[i] = dl_ticks_begin();
  const dl_clock_steps steps = dl_clock_steps_of(readings, READINGS);
  if (steps.smallest > 0 && (seen->smallest == 0 || steps.smallest < seen->smallest)) seen->smallest = steps.smallest;
  if (steps.backward > seen->backward) seen->backward = steps.backward;
}

static int ascending(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

static int64_t pair_cost(void) {
  int64_t costs[READINGS];
  for (size_t i = 0; i < READINGS; ++i) {
    const uint64_t begin = dl_ticks_begin();
    costs[i] = (int64_t)(dl_ticks_end() - begin);
  }
  qsort(costs, READINGS, sizeof costs[0], ascending);
  return costs[READINGS / 2];
}

dl_status dl_clock_calibrate(dl_clock_info *info) {
  *info = (dl_clock_info){.source = dl_clock_name(), .cost = -1};
  if (!readable()) return DL_NOT_SUPPORTED;
  info->steady = steady();
  dl_clock_anchor from, to;
  if (dl_clock_anchor_take(&from) != DL_OK) return DL_OS_ERROR;
  to = from;
  for (int batch = 0; batch < MOST_BATCHES && to.ns - from.ns < calibration_ns; ++batch) {
    observe(&info->steps);
    if (dl_clock_anchor_take(&to) != DL_OK) return DL_OS_ERROR;
  }
  info->cost = pair_cost();
  info->ticks_per_ns = dl_clock_rate(from, to);
  return info->steps.backward == 0 && info->steps.smallest > 0 && info->ticks_per_ns > 0 ? DL_OK : DL_OS_ERROR;
}
