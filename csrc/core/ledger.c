/* Reads the ledger: getrusage of the thread, its CPU, steal out of /proc/stat, and the two clocks. */
#include "ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#endif

const char *const dl_ledger_names[DL_LEDGER_COLUMNS] = {
    [DL_LEDGER_VOLUNTARY] = "voluntary",       [DL_LEDGER_INVOLUNTARY] = "involuntary",
    [DL_LEDGER_MINOR_FAULTS] = "minor_faults", [DL_LEDGER_MAJOR_FAULTS] = "major_faults",
    [DL_LEDGER_STEAL] = "steal",               [DL_LEDGER_MIGRATIONS] = "migrations",
    [DL_LEDGER_SKEW] = "skew_ppb",
};

/* A line of /proc/stat is a name and ten numbers of at most 20 digits. */
enum { LONGEST_LINE = 256, STEAL_FIELD = 8 };
static const double largest_skew = 1e18; /* keeps the conversion to int64 defined */

dl_status dl_ledger_open(dl_ledger *ledger, int32_t cpu) {
  *ledger = (dl_ledger){.stat_fd = -1, .cpu = cpu, .room = LONGEST_LINE * ((size_t)(cpu < 0 ? 0 : cpu) + 2)};
  ledger->text = malloc(ledger->room);
  if (ledger->text == NULL) return DL_NO_MEMORY;
  ledger->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  return DL_OK;
}

void dl_ledger_close(dl_ledger *ledger) {
  if (ledger->stat_fd >= 0) close(ledger->stat_fd);
  free(ledger->text);
  *ledger = (dl_ledger){.stat_fd = -1, .cpu = -1};
}

/* One read from the start is one consistent snapshot: the kernel makes the whole file anew for it. */
static int64_t read_steal(const dl_ledger *ledger) {
  if (ledger->stat_fd < 0) return -1;
  const ssize_t length = pread(ledger->stat_fd, ledger->text, ledger->room - 1, 0);
  if (length <= 0) return -1;
  ledger->text[length] = '\0';

  char name[16] = "cpu "; /* the sum is the first line; every other line follows a line break */
  if (ledger->cpu >= 0) snprintf(name, sizeof name, "\ncpu%d ", (int)ledger->cpu);
  const char *at = strstr(ledger->text, name);
  if (at == NULL) return -1;
  at += strlen(name);

  long long value = -1;
  for (int field = 1; field <= STEAL_FIELD; ++field) {
    char *after;
    value = strtoll(at, &after, 10);
    if (after == at || (*after != ' ' && *after != '\n')) return -1; /* an older kernel, or cut by the buffer */
    at = after;
  }
  return value;
}

/* Only the thread's own usage will do: the process's would count whatever draws the progress bar. */
static void read_usage(int64_t counts[DL_LEDGER_COUNTS]) {
#if defined(RUSAGE_THREAD)
  struct rusage used;
  if (getrusage(RUSAGE_THREAD, &used) != 0) return;
  counts[DL_LEDGER_VOLUNTARY] = used.ru_nvcsw;
  counts[DL_LEDGER_INVOLUNTARY] = used.ru_nivcsw;
  counts[DL_LEDGER_MINOR_FAULTS] = used.ru_minflt;
  counts[DL_LEDGER_MAJOR_FAULTS] = used.ru_majflt;
#else
  (void)counts;
#endif
}

static int32_t current_cpu(void) {
#if defined(__linux__)
  return (int32_t)sched_getcpu();
#else
  return -1;
#endif
}

void dl_ledger_read(const dl_ledger *ledger, dl_ledger_sample *sample) {
  for (int i = 0; i < DL_LEDGER_COUNTS; ++i) sample->counts[i] = -1;
  read_usage(sample->counts);
  sample->counts[DL_LEDGER_STEAL] = read_steal(ledger);
  sample->cpu = current_cpu();
  sample->anchored = dl_clock_anchor_take(&sample->anchor) == DL_OK;
}

static int64_t skew_ppb(const dl_ledger_sample *from, const dl_ledger_sample *to, double ticks_per_ns) {
  if (!from->anchored || !to->anchored || to->anchor.ns <= from->anchor.ns || !(ticks_per_ns > 0)) return -1;
  const double off = dl_clock_rate(from->anchor, to->anchor) / ticks_per_ns - 1;
  const double skew = (off < 0 ? -off : off) * 1e9;
  return skew < largest_skew ? (int64_t)skew : (int64_t)largest_skew;
}

void dl_ledger_row(const dl_ledger_sample *from, const dl_ledger_sample *to, double ticks_per_ns,
                   int64_t row[DL_LEDGER_COLUMNS]) {
  for (int i = 0; i < DL_LEDGER_COUNTS; ++i) {
    const int64_t before = from->counts[i], after = to->counts[i];
    row[i] = before < 0 || after < before ? -1 : after - before;
  }
  row[DL_LEDGER_MIGRATIONS] = from->cpu < 0 || to->cpu < 0 ? -1 : from->cpu != to->cpu;
  row[DL_LEDGER_SKEW] = skew_ppb(from, to, ticks_per_ns);
}
