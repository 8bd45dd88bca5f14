/* Runs the rings and locks named on the command line between two threads, once built with ThreadSanitizer and once without it and with
 * random delays (DL_LAB_SHAKE). between ring|lock NAME COUNT CAPACITY; exit code 1 when an item or an increment is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity.h"
#include "labs.h"

static int32_t cpus[2];

static bool ring(const dl_ring_version *v, uint64_t count, size_t capacity) {
  static dl_lab lab;
  dl_transfer task = {.ring = v->open(capacity), .count = count};
  lab = (dl_lab){.body = v->body, .task = &task, .cpus = cpus, .threads = 2, .shared = true};
  const dl_status status = dl_lab_run(&lab, NULL, NULL);
  v->close(task.ring);
  return status == DL_OK && task.wrong == 0 && task.received == count && task.checksum == dl_transfer_expected(count);
}

static bool lock(const dl_lock_version *v, uint64_t each) {
  static dl_lab lab;
  static dl_contest task;
  task = (dl_contest){.lock = v->open(), .each = each, .waits = true};
  lab = (dl_lab){.body = v->body, .task = &task, .cpus = cpus, .threads = 2};
  const dl_status status = dl_lab_run(&lab, NULL, NULL);
  v->close(task.lock);
  return status == DL_OK && task.counter == 2 * each;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  dl_affinity saved;
  if (dl_affinity_save(&saved) != DL_OK || dl_affinity_allowed(&saved, cpus, 2) < 2) return 77;
  bool ok = false;
  const uint64_t count = strtoull(argv[3], NULL, 10);
  for (size_t i = 0; strcmp(argv[1], "ring") == 0 && dl_ring_versions[i] != NULL; ++i)
    if (strcmp(dl_ring_versions[i]->name, argv[2]) == 0) ok = ring(dl_ring_versions[i], count, (size_t)atoi(argv[4]));
  for (size_t i = 0; strcmp(argv[1], "lock") == 0 && dl_lock_versions[i] != NULL; ++i)
    if (strcmp(dl_lock_versions[i]->name, argv[2]) == 0) ok = lock(dl_lock_versions[i], count);
  dl_affinity_free(&saved);
  return ok ? 0 : 1;
}
