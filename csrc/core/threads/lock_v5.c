/* v5: tickets, served in order. */
#include "lab.h"

typedef struct tickets {
  _Alignas(DL_APART) _Atomic uint32_t next;
  _Alignas(DL_APART) _Atomic uint32_t served;
} tickets;

#define LOCK tickets
DL_INLINE void start(LOCK *lock) { (void)lock; }
DL_INLINE void acquire(LOCK *lock, size_t who) {
  (void)who;
  const uint32_t mine = atomic_fetch_add_explicit(&lock->next, 1, memory_order_relaxed);
  for (uint32_t turns = 1; atomic_load_explicit(&lock->served, memory_order_acquire) != mine; ++turns) {
    dl_pause();
    if ((turns & 1023) == 0) sched_yield(); /* the next in line may not be running */
  }
}
DL_INLINE void release(LOCK *lock, size_t who) {
  (void)who;
  const uint32_t now = atomic_load_explicit(&lock->served, memory_order_relaxed);
  atomic_store_explicit(&lock->served, now + 1, memory_order_release);
}

#define VERSION v5
#define NAME "v5"
#define ABOUT "ticket"
#define FAIR true
#include "lock_loop.inc"
