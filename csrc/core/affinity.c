/* Pinning through Linux CPU sets of whatever size the kernel needs; elsewhere every CPU is allowed and none can be
 * pinned. */
#include "affinity.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__linux__)

#include <errno.h>
#include <sched.h>

/* A cpu_set_t holds 1024 CPUs. A kernel built for more answers EINVAL until the set is large enough. */
static const size_t most_cpus = (size_t)1 << 20;

dl_status dl_affinity_save(dl_affinity *saved) {
  *saved = (dl_affinity){NULL, 0};
  for (size_t cpus = CPU_SETSIZE; cpus <= most_cpus; cpus *= 2) {
    cpu_set_t *mask = CPU_ALLOC(cpus);
    if (mask == NULL) return DL_NO_MEMORY;
    if (sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), mask) == 0) {
      *saved = (dl_affinity){mask, CPU_ALLOC_SIZE(cpus)};
      return DL_OK;
    }
    const int why = errno;
    CPU_FREE(mask);
    errno = why;
    if (why != EINVAL) break;
  }
  return DL_OS_ERROR;
}

static size_t limit(const dl_affinity *saved) { return saved->bytes * 8; }

static bool allows(const dl_affinity *saved, size_t cpu) {
  return saved->mask != NULL && CPU_ISSET_S(cpu, saved->bytes, (cpu_set_t *)saved->mask);
}

dl_status dl_affinity_pin(const dl_affinity *saved, int32_t cpu) {
  if (cpu < 0 || (size_t)cpu >= limit(saved) || !allows(saved, (size_t)cpu)) return DL_BAD_ARGUMENT;
  cpu_set_t *one = CPU_ALLOC(saved->bytes * 8);
  if (one == NULL) return DL_NO_MEMORY;
  CPU_ZERO_S(saved->bytes, one);
  CPU_SET_S((size_t)cpu, saved->bytes, one);
  const int refused = sched_setaffinity(0, saved->bytes, one);
  const int why = errno;
  CPU_FREE(one);
  errno = why;
  return refused ? DL_OS_ERROR : DL_OK;
}

dl_status dl_affinity_restore(dl_affinity *saved) {
  const int refused = saved->mask != NULL && sched_setaffinity(0, saved->bytes, saved->mask) != 0;
  const int why = errno;
  dl_affinity_free(saved);
  errno = why;
  return refused ? DL_OS_ERROR : DL_OK;
}

void dl_affinity_free(dl_affinity *saved) {
  if (saved->mask != NULL) CPU_FREE((cpu_set_t *)saved->mask);
  *saved = (dl_affinity){NULL, 0};
}

#else

#include <unistd.h>

dl_status dl_affinity_save(dl_affinity *saved) {
  *saved = (dl_affinity){NULL, 0};
  return DL_OK;
}

static size_t limit(const dl_affinity *saved) {
  (void)saved;
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (size_t)online : 0;
}

static bool allows(const dl_affinity *saved, size_t cpu) {
  (void)saved, (void)cpu;
  return true;
}

dl_status dl_affinity_pin(const dl_affinity *saved, int32_t cpu) {
  return cpu < 0 || (size_t)cpu >= limit(saved) ? DL_BAD_ARGUMENT : DL_NOT_SUPPORTED;
}

dl_status dl_affinity_restore(dl_affinity *saved) {
  (void)saved;
  return DL_OK;
}

void dl_affinity_free(dl_affinity *saved) { (void)saved; }

#endif

size_t dl_affinity_allowed(const dl_affinity *saved, int32_t *cpus, size_t room) {
  size_t count = 0;
  for (size_t cpu = 0; cpu < limit(saved); ++cpu)
    if (allows(saved, cpu) && count++ < room) cpus[count - 1] = (int32_t)cpu;
  return count;
}

void dl_affinity_describe(const dl_affinity *saved, char *text, size_t room) {
  static const char cut[] = "...";
  size_t used = 0;
  for (size_t first = 0; first < limit(saved); ++first) {
    if (!allows(saved, first)) continue;
    size_t last = first;
    while (last + 1 < limit(saved) && allows(saved, last + 1)) ++last;

    char range[64];
    int length = snprintf(range, sizeof range, used ? ",%zu" : "%zu", first);
    if (last > first) length += snprintf(range + length, sizeof range - (size_t)length, "-%zu", last);
    if (used + (size_t)length + sizeof cut > room) {
      memcpy(text + used, cut, sizeof cut);
      return;
    }
    memcpy(text + used, range, (size_t)length);
    used += (size_t)length;
    first = last;
  }
  text[used] = '\0';
}
