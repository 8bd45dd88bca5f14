/* Pinning: the calling thread onto one CPU out of those it is allowed to use, and back again. */
#ifndef DL_AFFINITY_H
#define DL_AFFINITY_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* The CPUs a thread was allowed to use when it was saved: its own mask, so what taskset, a cpuset or a container left
 * of the machine, without CPUs that are offline. */
typedef struct dl_affinity {
  void *mask;   /* owned; a CPU set of `bytes` bytes, NULL where the platform has none */
  size_t bytes;
} dl_affinity;

/* Saves the mask of the calling thread. Release it with dl_affinity_restore() or dl_affinity_free(). */
dl_status dl_affinity_save(dl_affinity *saved);

/* Writes the first `room` allowed CPUs, ascending, and returns how many there are. */
size_t dl_affinity_allowed(const dl_affinity *saved, int32_t *cpus, size_t room);

/* Writes the allowed CPUs as a list of ranges, "0-3,8", cut with "..." where it does not fit. At least four
 * bytes of room. */
void dl_affinity_describe(const dl_affinity *saved, char *text, size_t room);

/* Moves the calling thread to `cpu`. DL_BAD_ARGUMENT: not in the saved set. DL_NOT_SUPPORTED: no pinning here. */
dl_status dl_affinity_pin(const dl_affinity *saved, int32_t cpu);

/* Gives the calling thread its saved mask back and releases it. DL_OS_ERROR: the kernel refused; released anyway. */
dl_status dl_affinity_restore(dl_affinity *saved);

/* Releases the saved mask and leaves the thread as it is. */
void dl_affinity_free(dl_affinity *saved);

#endif
