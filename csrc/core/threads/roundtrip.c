/* Ping-pong: even numbers are written by thread 0, odd ones by thread 1. */
#include "labs.h"

void dl_roundtrip_body(dl_lab *lab, size_t who) {
  dl_roundtrip *task = lab->task;
  for (uint64_t i = 0; i < task->count; ++i) {
    uint32_t turns = 0;
    const uint64_t mine = 2 * i + who;
    while (atomic_load_explicit(&task->ball, memory_order_acquire) != mine) {
      if (lab->shared || (++turns & 1023) == 0) {
        if (lab->shared) sched_yield();
        if (dl_lab_stopped(lab)) return;
      }
    }
    atomic_store_explicit(&task->ball, mine + 1, memory_order_release);
  }
}
