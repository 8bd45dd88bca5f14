/* Drives what no real machine can be asked to do on demand: PMUs of several kinds, groups that do not fit, counters
 * that had to share, more CPUs than a cpu_set_t holds, steal, ledgers with missing columns. Prints one `name value...` line per question; argv[1] is a folder
 * shaped like /sys/bus/event_source/devices. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "affinity.h"
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

/* Stands in for the C library's: a kernel built for 4096 CPUs, which allows 0-2, 64 and 3000. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *mask) {
  (void)pid;
  if (bytes < 4096 / 8) {
    errno = EINVAL;
    return -1;
  }
  const int allowed[] = {0, 1, 2, 64, 3000};
  CPU_ZERO_S(bytes, mask);
  for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; ++i) CPU_SET_S(allowed[i], bytes, mask);
  return 0;
}

static void large_machine(void) {
  dl_affinity saved;
  char whole[64], cut[9];
  int32_t cpus[3] = {-1, -1, -1};
  printf("save %d\n", dl_affinity_save(&saved));
  printf("allowed %zu", dl_affinity_allowed(&saved, cpus, 3));
  printf(" %d %d %d\n", cpus[0], cpus[1], cpus[2]);
  dl_affinity_describe(&saved, whole, sizeof whole);
  dl_affinity_describe(&saved, cut, sizeof cut);
  printf("described %d %d\n", strcmp(whole, "0-2,64,3000"), strcmp(cut, "0-2..."));
  dl_affinity_free(&saved);
}

/* Steal of `cpu` when /proc/stat says `text`. */
static void steal(const char *name, const char *text, int32_t cpu) {
  dl_ledger ledger;
  dl_ledger_sample sample;
  if (dl_ledger_open(&ledger, cpu) != DL_OK) return;
  close(ledger.stat_fd);
  ledger.stat_fd = memfd_create("stat", 0);
  if (write(ledger.stat_fd, text, strlen(text)) < 0) return;
  dl_ledger_read(&ledger, &sample);
  printf("steal/%s %lld\n", name, (long long)sample.counts[DL_LEDGER_STEAL]);
  dl_ledger_close(&ledger);
}

static void steals(void) {
  const char *now = "cpu  9 9 9 9 9 9 9 300 9 9\ncpu1 1 2 3 4 5 6 7 80 9 10\ncpu11 1 2 3 4 5 6 7 220 9 10\nintr 5\n";
  steal("sum", now, -1);
  steal("one", now, 1);
  steal("eleven", now, 11);
  steal("offline", now, 0);
  steal("namesake", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu11 1 2 3 4 5 6 7 8 9 10\n", 1);
  steal("old", "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu1 1 2 3 4\n", 0);
  steal("cut", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8", 0);
  steal("empty", "", 0);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const int cpus[] = {0, 4, 5, 9, -1};
  for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; ++i) {
    uint64_t choice = 12345;
    const int why = dl_counters_pmu(argv[1], cpus[i], &choice);
    printf("pmu/%d %d %llu\n", cpus[i], why, (unsigned long long)choice);
  }
  report("shared", shared);
  report("starved", starved);
  report("no_groups", no_groups);
  report("no_files", no_files);
  report("modes", modes);
  rows();
  steals();
  large_machine();
  return 0;
}
