/* Drives what no real machine can be asked to do on demand: PMUs of several kinds, groups that do not fit, counters
 * that had to share, ledgers with missing columns. Prints one `name value...` line per question; argv[1] is a folder
 * shaped like /sys/bus/event_source/devices. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counters.h"
#include "ledger.h"

/* A descriptor that reads as a group of four: nothing at the first reading, these times and counts at the second. */
static int pretend(uint64_t enabled, uint64_t running) {
  uint64_t groups[2][3 + DL_COUNTERS] = {{4}, {4, enabled, running, 1000, 2000, 3000, 4000}};
  const int fd = memfd_create("group", 0);
  if (write(fd, groups, sizeof groups) != sizeof groups || lseek(fd, 0, SEEK_SET) != 0) return -1;
  return fd;
}

static int shared(uint32_t type, uint64_t config, bool user_only, int leader) {
  (void)type, (void)config, (void)user_only, (void)leader;
  return pretend(800, 200);
}

static int starved(uint32_t type, uint64_t config, bool user_only, int leader) {
  (void)type, (void)config, (void)user_only, (void)leader;
  return pretend(800, 0);
}

/* Takes each event alone, and none into a group. */
static int no_groups(uint32_t type, uint64_t config, bool user_only, int leader) {
  if (leader < 0) return shared(type, config, user_only, leader);
  errno = EINVAL;
  return -1;
}

/* Has software events that may not see the kernel, and hardware that must not. */
static int modes(uint32_t type, uint64_t config, bool user_only, int leader) {
  (void)leader, (void)config;
  errno = user_only == (type != 1) ? ENOENT : EDOM; /* 1 is PERF_TYPE_SOFTWARE */
  return -1;
}

static int no_files(uint32_t type, uint64_t config, bool user_only, int leader) {
  (void)type, (void)config, (void)user_only, (void)leader;
  errno = EMFILE;
  return -1;
}

static void report(const char *name, dl_event_open_fn open) {
  dl_counters counters;
  dl_counter_reading readings[DL_COUNTERS];
  dl_counters_open(&counters, 0, open);
  dl_counters_start(&counters);
  dl_counters_stop(&counters);
  dl_counters_read(&counters, readings);
  for (int i = 0; i < DL_COUNTERS; ++i)
    printf("%s/%s %lld %d %d %d\n", name, dl_counter_names[i], (long long)readings[i].value, (int)readings[i].source,
           readings[i].why, counters.leader[i] == i);
  dl_counters_close(&counters);
}

static void print_row(const char *name, const dl_ledger_sample *from, const dl_ledger_sample *to, double rate) {
  int64_t row[DL_LEDGER_COLUMNS];
  dl_ledger_row(from, to, rate, row);
  for (int i = 0; i < DL_LEDGER_COLUMNS; ++i) printf("%s/%s %lld\n", name, dl_ledger_names[i], (long long)row[i]);
}

static void rows(void) {
  const dl_ledger_sample from = {{1, 2, 3, 4, 5}, 0, true, {1000, 1000}};
  dl_ledger_sample to = {{2, 4, 6, 8, 10}, 1, true, {1000 + 2000010, 1000 + 1000000}};
  print_row("moved", &from, &to, 2.0);
  to.anchor.ticks = 500; /* the tick source stepped back */
  print_row("stepped", &from, &to, 2.0);
  to = (dl_ledger_sample){{-1, 1, -1, -1, -1}, -1, false, {0, 0}};
  print_row("missing", &from, &to, 2.0);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const int cpus[] = {0, 4, 5, 9, -1};
  for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; ++i) {
    uint32_t type = 12345;
    const int why = dl_counters_pmu(argv[1], cpus[i], &type);
    printf("pmu/%d %d %u\n", cpus[i], why, type);
  }
  report("shared", shared);
  report("starved", starved);
  report("no_groups", no_groups);
  report("no_files", no_files);
  report("modes", modes);
  rows();
  return 0;
}
