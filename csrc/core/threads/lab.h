/* Two or more pinned threads that begin together, and a caller that stays able to stop them. */
#ifndef DL_LAB_H
#define DL_LAB_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "compiler.h"
#include "status.h"

#define DL_LAB_THREADS 64
#define DL_APART 128

DL_INLINE void dl_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* A delay of no fixed length; nothing unless built with DL_LAB_SHAKE, which a test does, so that the two threads meet in other
 * places than two even loops would. */
DL_INLINE void dl_shake(uint32_t *draw) {
#ifdef DL_LAB_SHAKE
  *draw ^= *draw << 13;
  *draw ^= *draw >> 17;
  *draw ^= *draw << 5;
  for (uint32_t n = *draw & 31; n > 0; --n) dl_pause();
  if ((*draw >> 8 & 1023) == 0) sched_yield();
#else
  (void)draw;
#endif
}

typedef struct dl_lab dl_lab;
typedef void (*dl_lab_body)(dl_lab *lab, size_t who);

struct dl_lab {
  dl_lab_body body;
  void *task;           /* of the lab: the ring or lock, counts, results */
  const int32_t *cpus;  /* one per thread */
  size_t threads;
  bool shared;          /* several threads on one CPU: waiting gives the CPU away from time to time */
  int64_t elapsed;      /* ticks from the first begin to the last end */
  int64_t whole;        /* the same with creating and joining the threads */
  uint64_t begin[DL_LAB_THREADS];
  uint64_t end[DL_LAB_THREADS];
  _Alignas(DL_APART) _Atomic uint32_t ready;
  _Atomic uint32_t done;
  _Atomic int refused; /* a thread could not be pinned */
  _Alignas(DL_APART) _Atomic bool go;
  _Alignas(DL_APART) _Atomic bool stop;
};

/* Called by the waiting caller every few ms; false asks the threads to stop. */
typedef bool (*dl_lab_hook)(void *context);

/* Runs lab->body in every thread and joins them all. DL_STOPPED: the hook said so, the threads are joined. DL_OS_ERROR: a
 * thread could not be made or pinned. */
dl_status dl_lab_run(dl_lab *lab, dl_lab_hook hook, void *context);

DL_INLINE bool dl_lab_stopped(dl_lab *lab) { return atomic_load_explicit(&lab->stop, memory_order_relaxed); }

/* One turn of a waiting loop; false when the lab is to stop. `turns` starts at 0. */
DL_INLINE bool dl_lab_wait(dl_lab *lab, uint32_t *turns) {
  dl_pause();
  if (DL_LIKELY((++*turns & 255) != 0)) return true;
  if (lab->shared) sched_yield();
  return !dl_lab_stopped(lab);
}

#endif
