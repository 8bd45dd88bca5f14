/* Event counters through perf_event_open, and through the kernel's accounting where that is refused. */
#include "counters.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#endif

const char *const dl_counter_names[DL_COUNTERS] = {
    [DL_CYCLES] = "cycles",
    [DL_INSTRUCTIONS] = "instructions",
    [DL_BRANCHES] = "branches",
    [DL_BRANCH_MISSES] = "branch-misses",
    [DL_L1I_MISSES] = "L1i-misses",
    [DL_ITLB_MISSES] = "iTLB-misses",
    [DL_FRONTEND_STALLS] = "frontend-stalls",
    [DL_TASK_CLOCK] = "task-clock",
    [DL_CONTEXT_SWITCHES] = "context-switches",
    [DL_CPU_MIGRATIONS] = "cpu-migrations",
    [DL_PAGE_FAULTS] = "page-faults",
};

/* What the kernel accounts for the calling thread anyway. */
static void read_accounting(int64_t counts[DL_COUNTERS]) {
  for (int i = 0; i < DL_COUNTERS; ++i) counts[i] = -1;
#if defined(RUSAGE_THREAD)
  struct rusage used;
  if (getrusage(RUSAGE_THREAD, &used) == 0) {
    counts[DL_CONTEXT_SWITCHES] = (int64_t)used.ru_nvcsw + used.ru_nivcsw;
    counts[DL_PAGE_FAULTS] = (int64_t)used.ru_minflt + used.ru_majflt;
  }
#endif
  struct timespec busy;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &busy) == 0)
    counts[DL_TASK_CLOCK] = (int64_t)busy.tv_sec * 1000000000 + busy.tv_nsec;
}

#if defined(__linux__)

/* Groups are scheduled as a whole or not at all, so each must fit a PMU with four general counters. Instructions and
 * cycles are compared with the branches, hence together. */
enum { GROUP_WORK, GROUP_FRONT_END, GROUP_SOFTWARE };

/* Added to a cache's number; the encoding is perf_event_open(2)'s. */
enum { READ_MISSES = PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16 };

static const struct event {
  uint32_t type;
  uint64_t config;
  int group;
} events[DL_COUNTERS] = {
    [DL_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, GROUP_WORK},
    [DL_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, GROUP_WORK},
    [DL_BRANCHES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, GROUP_WORK},
    [DL_BRANCH_MISSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, GROUP_WORK},
    [DL_L1I_MISSES] = {PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1I + READ_MISSES, GROUP_FRONT_END},
    [DL_ITLB_MISSES] = {PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_ITLB + READ_MISSES, GROUP_FRONT_END},
    [DL_FRONTEND_STALLS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, GROUP_FRONT_END},
    [DL_TASK_CLOCK] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, GROUP_SOFTWARE},
    [DL_CONTEXT_SWITCHES] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, GROUP_SOFTWARE},
    [DL_CPU_MIGRATIONS] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, GROUP_SOFTWARE},
    [DL_PAGE_FAULTS] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, GROUP_SOFTWARE},
};

int dl_event_open(uint32_t type, uint64_t config, bool user_only, int leader) {
  struct perf_event_attr attr = {
      .type = type,
      .size = sizeof attr,
      .config = config,
      .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
      .disabled = leader < 0,
      .exclude_kernel = user_only,
      .exclude_hv = user_only,
  };
  return (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* The first counter of the same group that opened, or -1. */
static int leader_of(const dl_counters *counters, int which) {
  for (int i = 0; i < which; ++i)
    if (events[i].group == events[which].group && counters->fd[i] >= 0 && counters->leader[i] == i) return i;
  return -1;
}

/* Opens one counter inside its group, or alone where the group as a whole cannot be scheduled, which the kernel
 * answers with EINVAL. */
static void open_counter(dl_counters *counters, int which, uint64_t config, dl_event_open_fn open) {
  const bool user_only = events[which].type != PERF_TYPE_SOFTWARE;
  const int leader = leader_of(counters, which);
  int fd = open(events[which].type, config, user_only, leader < 0 ? -1 : counters->fd[leader]);
  counters->leader[which] = leader < 0 ? which : leader;
  if (fd < 0 && errno == EINVAL && leader >= 0) {
    fd = open(events[which].type, config, user_only, -1);
    counters->leader[which] = which;
  }
  counters->fd[which] = fd;
  counters->why[which] = fd < 0 ? errno : 0;
}

void dl_counters_open(dl_counters *counters, int32_t cpu, dl_event_open_fn open) {
  memset(counters, 0, sizeof *counters);
  uint64_t pmu;
  const int kind = dl_counters_pmu("/sys/bus/event_source/devices", cpu, &pmu);
  for (int i = 0; i < DL_COUNTERS; ++i) {
    const bool hardware = events[i].type != PERF_TYPE_SOFTWARE;
    counters->fd[i] = -1;
    counters->leader[i] = i;
    counters->why[i] = kind;
    if (!hardware) open_counter(counters, i, events[i].config, open);
    else if (kind == 0) open_counter(counters, i, events[i].config | pmu, open);
  }
}

void dl_counters_close(dl_counters *counters) {
  for (int i = 0; i < DL_COUNTERS; ++i) {
    if (counters->fd[i] >= 0) close(counters->fd[i]);
    counters->fd[i] = -1;
  }
}

/* Reads one group into the unscaled readings of its members; the kernel lists them in the order they were opened. */
static void read_group(const dl_counters *counters, int leader, dl_counter_reading raw[DL_COUNTERS]) {
  struct {
    uint64_t count, enabled, running, values[DL_COUNTERS];
  } group;
  const ssize_t got = read(counters->fd[leader], &group, sizeof group);
  const int why = got < 0 ? errno : EIO;
  uint64_t next = 0;
  for (int i = leader; i < DL_COUNTERS; ++i) {
    if (counters->fd[i] < 0 || counters->leader[i] != leader) continue;
    if (got > 0 && next < group.count)
      raw[i] = (dl_counter_reading){.value = (int64_t)group.values[next++],
                                    .enabled_ns = (int64_t)group.enabled,
                                    .running_ns = (int64_t)group.running,
                                    .source = DL_FROM_PERF};
    else
      raw[i] = (dl_counter_reading){.value = -1, .why = why};
  }
}

static void read_perf(const dl_counters *counters, dl_counter_reading raw[DL_COUNTERS]) {
  for (int i = 0; i < DL_COUNTERS; ++i) raw[i] = (dl_counter_reading){.value = -1, .why = counters->why[i]};
  for (int i = 0; i < DL_COUNTERS; ++i)
    if (counters->fd[i] >= 0 && counters->leader[i] == i) read_group(counters, i, raw);
}

static void switch_group(const dl_counters *counters, int which, unsigned long request) {
  if (counters->fd[which] >= 0 && counters->leader[which] == which)
    ioctl(counters->fd[which], request, PERF_IOC_FLAG_GROUP);
}

/* Hardware groups come last in and first out, so that they see least of the switching. */
static void enable(const dl_counters *counters) {
  for (int i = DL_COUNTERS - 1; i >= 0; --i) switch_group(counters, i, PERF_EVENT_IOC_ENABLE);
}

static void disable(const dl_counters *counters) {
  for (int i = 0; i < DL_COUNTERS; ++i) switch_group(counters, i, PERF_EVENT_IOC_DISABLE);
}

#else

int dl_event_open(uint32_t type, uint64_t config, bool user_only, int leader) {
  (void)type, (void)config, (void)user_only, (void)leader;
  errno = ENOSYS;
  return -1;
}

void dl_counters_open(dl_counters *counters, int32_t cpu, dl_event_open_fn open) {
  (void)cpu, (void)open;
  memset(counters, 0, sizeof *counters);
  for (int i = 0; i < DL_COUNTERS; ++i) counters->fd[i] = -1, counters->why[i] = ENOSYS;
}

void dl_counters_close(dl_counters *counters) { (void)counters; }

static void read_perf(const dl_counters *counters, dl_counter_reading raw[DL_COUNTERS]) {
  for (int i = 0; i < DL_COUNTERS; ++i) raw[i] = (dl_counter_reading){.value = -1, .why = counters->why[i]};
}

static void enable(const dl_counters *counters) { (void)counters; }
static void disable(const dl_counters *counters) { (void)counters; }

#endif

/* Every counter as it stands now, unscaled: perf where it opened, accounting where it can stand in. */
static void read_raw(const dl_counters *counters, dl_counter_reading raw[DL_COUNTERS]) {
  int64_t accounts[DL_COUNTERS];
  read_accounting(accounts);
  read_perf(counters, raw);
  for (int i = 0; i < DL_COUNTERS; ++i)
    if (raw[i].source == DL_FROM_NOWHERE && accounts[i] >= 0)
      raw[i] = (dl_counter_reading){.value = accounts[i],
                                    .enabled_ns = accounts[DL_TASK_CLOCK],
                                    .running_ns = accounts[DL_TASK_CLOCK],
                                    .source = DL_FROM_ACCOUNTING};
}

void dl_counters_start(dl_counters *counters) {
  read_raw(counters, counters->base);
  enable(counters);
}

void dl_counters_stop(dl_counters *counters) {
  disable(counters);
  read_raw(counters, counters->last);
}

/* From unscaled now and unscaled then to what happened in between. */
static dl_counter_reading difference(dl_counter_reading now, dl_counter_reading then) {
  if (now.source == DL_FROM_NOWHERE) return now;
  if (then.source != now.source) return (dl_counter_reading){.value = -1, .why = then.why ? then.why : EIO};
  now.value -= then.value;
  now.enabled_ns -= then.enabled_ns;
  now.running_ns -= then.running_ns;
  if (now.running_ns <= 0) {
    now.value = -1;
    now.source = DL_FROM_NOWHERE;
    now.why = DL_WHY_NEVER_SCHEDULED;
  } else if (now.running_ns < now.enabled_ns) {
    now.value = (int64_t)((double)now.value * ((double)now.enabled_ns / (double)now.running_ns) + 0.5);
  }
  return now;
}

void dl_counters_read(const dl_counters *counters, dl_counter_reading readings[DL_COUNTERS]) {
  for (int i = 0; i < DL_COUNTERS; ++i) readings[i] = difference(counters->last[i], counters->base[i]);
}
