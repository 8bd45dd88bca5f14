/* The generator sends packets with the time they were made; the dispatching thread takes what is there, runs the arm over it
 * and notes when it was done. */
#include <stdlib.h>

#include "dispatchlab/dl_ring.h"
#include "labs.h"
#include "ring_common.h"

#define AT_ONCE 32

typedef struct parcel {
  dl_packet packet;
  uint64_t made;
} parcel;

void *dl_pipeline_ring(size_t capacity) {
  dl_ring *ring = dl_apart(sizeof *ring);
  if (ring == NULL || dl_ring_open(ring, capacity, sizeof(parcel))) return ring;
  free(ring);
  return NULL;
}

void dl_pipeline_ring_close(void *ring) {
  dl_ring_close(ring);
  free(ring);
}

static void generate(dl_lab *lab, const dl_pipeline *task) {
  uint64_t next = dl_ticks_end();
  for (uint64_t i = 0; i < task->count; ++i) {
    uint32_t turns = 0;
    while (task->gap != 0 && (int64_t)(dl_ticks_end() - next) < 0)
      if (!dl_lab_wait(lab, &turns)) return;
    /* Paced: a packet is due at its time, whenever the ring has room for it. */
    const parcel p = {task->packets[i % task->pool], task->gap != 0 ? next : dl_ticks_end()};
    next += task->gap;
    while (!dl_ring_push((dl_ring *)task->ring, &p))
      if (!dl_lab_wait(lab, &turns)) return;
  }
}

/* Takes up to AT_ONCE packets, one or more; 0 when the lab stops. */
static size_t receive(dl_lab *lab, dl_pipeline *task, dl_packet *packets, uint64_t *made) {
  size_t n = 0;
  uint32_t turns = 0;
  const uint64_t left = task->count - task->received;
  for (parcel p; n < AT_ONCE && n < left;) {
    if (dl_ring_take((dl_ring *)task->ring, &p)) {
      packets[n] = p.packet;
      made[n++] = p.made;
    } else if (n > 0 || !dl_lab_wait(lab, &turns)) {
      break;
    }
  }
  dl_ring_release(task->ring);
  return n;
}

static void dispatch_all(dl_lab *lab, dl_pipeline *task) {
  dl_packet packets[AT_ONCE];
  uint64_t made[AT_ONCE];
  dl_result results[AT_ONCE];
  dl_checksum sum = dl_checksum_start();
  while (task->received < task->count) {
    const size_t n = receive(lab, task, packets, made);
    if (n == 0) break;
    task->loops->results(task->state, packets, n, results);
    const uint64_t now = dl_ticks_end();
    for (size_t i = 0; i < n; ++i) {
      task->latency[task->received + i] = (int64_t)(now - made[i]);
      dl_checksum_feed(&sum, results[i]);
    }
    task->received += n;
  }
  task->checksum = dl_checksum_end(&sum);
}

void dl_pipeline_body(dl_lab *lab, size_t who) {
  if (who == 0) generate(lab, lab->task);
  else dispatch_all(lab, lab->task);
}
