/* Why a counter has no value, in words a person can act on. */
#include "counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct reason {
  int why;
  const char *text;
} reasons[] = {
    {DL_WHY_UNPINNED_HYBRID, "this CPU has several core kinds and the thread is not pinned to one"},
    {DL_WHY_NEVER_SCHEDULED, "the event never got a hardware counter; a profiler or the NMI watchdog may hold them"},
    {EACCES, "EACCES: this user may not count; lower kernel.perf_event_paranoid or grant CAP_PERFMON"},
    {EPERM, "EPERM: perf_event_open is forbidden here, as by a container's seccomp profile; grant CAP_PERFMON"},
    {ENOENT, "ENOENT: this PMU has no such event; a virtual machine often has no PMU at all"},
    {EINVAL, "EINVAL: the kernel does not accept this event"},
    {EOPNOTSUPP, "EOPNOTSUPP: this PMU cannot count the event in user mode only"},
    {ENODEV, "ENODEV: this CPU's PMU is not available"},
    {ENOSYS, "ENOSYS: this kernel has no perf_event_open"},
    {EMFILE, "EMFILE: this process has too many open files"},
    {ENFILE, "ENFILE: this machine has too many open files"},
    {EBUSY, "EBUSY: another user holds the PMU alone"},
    {E2BIG, "E2BIG: this kernel is too old for the request"},
    {ENOMEM, "ENOMEM: no memory for the event"},
    {EIO, "EIO: the event could not be read"},
};

int dl_counters_paranoid(void) {
  char line[32];
  FILE *stream = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
  if (stream == NULL) return DL_PARANOID_UNKNOWN;
  const bool read = fgets(line, sizeof line, stream) != NULL;
  fclose(stream);
  return read ? (int)strtol(line, NULL, 10) : DL_PARANOID_UNKNOWN;
}

void dl_counters_reason(int why, int paranoid, char *text, size_t room) {
  const struct reason *known = reasons;
  const struct reason *const end = reasons + sizeof reasons / sizeof reasons[0];
  while (known < end && known->why != why) ++known;
  if (why == 0) snprintf(text, room, "%s", "");
  else if (known == end) snprintf(text, room, "perf_event_open failed with error %d", why);
  else if ((why == EACCES || why == EPERM) && paranoid != DL_PARANOID_UNKNOWN)
    snprintf(text, room, "%s (perf_event_paranoid is %d)", known->text, paranoid);
  else snprintf(text, room, "%s", known->text);
}
