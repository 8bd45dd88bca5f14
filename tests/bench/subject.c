/* What every tool times: one arm over one handler set and its packets, the very machine code that the package times. */
#include <stdio.h>
#include <stdlib.h>

#include "arm.h"

uint64_t subject_run(void);
int subject_open(const char *folder, const char *arm, uint32_t count, size_t packets);

static struct {
  dl_prepared prepared;
  dl_packet *packets;
  size_t count;
} subject;

static void *read_all(const char *folder, const char *name, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  void *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
  FILE *file = fopen(path, "rb");
  if (file == NULL || data == NULL || fread(data, 1, bytes, file) != bytes) exit(2);
  fclose(file);
  return data;
}

int subject_open(const char *folder, const char *arm, uint32_t count, size_t packets) {
  const dl_handler_spec spec = {
      .stamp = dl_stamp_find("chain", "fat"),
      .count = count,
      .packed = true,
      .keys = read_all(folder, "keys", count * sizeof(uint16_t)),
      .masks = read_all(folder, "masks", count),
      .values = read_all(folder, "values", count),
      .order = read_all(folder, "order", count * sizeof(int32_t)),
  };
  dl_handler_set *set;
  if (dl_handler_set_create(&spec, &set) != DL_OK) return 0;
  const dl_arm_setup setup = {set, NULL};
  if (dl_arm_find(arm)->prepare(&setup, &subject.prepared) != DL_OK) return 0;
  subject.packets = read_all(folder, "packets", packets * sizeof(dl_packet));
  subject.count = packets;
  return 1;
}

uint64_t subject_run(void) {
  return subject.prepared.loops->timed[0](subject.prepared.state, subject.packets, subject.count);
}
