/* CPUs of several core kinds (Intel's cpu_core and cpu_atom, Arm's big and little) have one PMU per kind, and an event
 * must name the one it wants. Each such PMU lists its CPUs in a file called `cpus`; the single PMU of an ordinary x86
 * has none, and the PMUs outside the cores call theirs `cpumask`. */
#include "counters.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads the first line of devices/name/file; false when there is none. */
static bool read_line(const char *devices, const char *name, const char *file, char *line, size_t room) {
  char path[512];
  const int length = snprintf(path, sizeof path, "%s/%s/%s", devices, name, file);
  if (length < 0 || (size_t)length >= sizeof path) return false;
  FILE *stream = fopen(path, "re");
  if (stream == NULL) return false;
  const bool found = fgets(line, (int)room, stream) != NULL;
  fclose(stream);
  return found;
}

/* Whether a kernel CPU list such as "0-7,16,18-19" holds cpu. */
static bool lists(const char *list, long cpu) {
  while (*list >= '0' && *list <= '9') {
    char *after;
    const long first = strtol(list, &after, 10);
    const long last = *after == '-' ? strtol(after + 1, &after, 10) : first;
    if (first <= cpu && cpu <= last) return true;
    list = *after == ',' ? after + 1 : after;
  }
  return false;
}

int dl_counters_pmu(const char *devices, int32_t cpu, uint64_t *choice) {
  *choice = 0;
  DIR *folder = opendir(devices);
  if (folder == NULL) return 0; /* no sysfs: let perf_event_open say what it can do */
  int kinds = 0;
  bool found = false;
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char line[4096];
    if (!read_line(devices, entry->d_name, "cpus", line, sizeof line)) continue;
    kinds += 1;
    if (cpu < 0 || !lists(line, cpu) || !read_line(devices, entry->d_name, "type", line, sizeof line)) continue;
    *choice = (uint64_t)strtoul(line, NULL, 10) << 32;
    found = true;
  }
  closedir(folder);
  if (kinds > 1 && cpu < 0) return DL_WHY_UNPINNED_HYBRID;
  if (kinds > 1) return found ? 0 : ENODEV;
  *choice = 0; /* one kind needs no naming, and kernels before 5.13 would refuse it */
  return 0;
}
