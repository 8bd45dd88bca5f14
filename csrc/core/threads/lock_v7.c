/* v7: unfair within bounds. Whoever released may take the lock again while it is warm, as in v4; but a waiter that has spun
 * its share says so, and from then on newcomers let it go first. It sleeps in the kernel meanwhile, where there are futexes. */
#include "lab.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { FREE, HELD, HELD_AND_SLEPT_FOR };
#define SPINS 16384u /* pauses before a waiter insists: some 200 us */
#define LONGEST 1024u

typedef struct hybrid {
  _Alignas(DL_APART) _Atomic uint32_t state;
  _Atomic uint32_t insisting; /* beside the state: who takes the lock has this line anyway */
} hybrid;

static void sleep_on(_Atomic uint32_t *word) {
#if defined(__linux__)
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, HELD_AND_SLEPT_FOR, NULL, NULL, 0);
#else
  (void)word;
  sched_yield();
#endif
}

static void wake_one(_Atomic uint32_t *word) {
#if defined(__linux__)
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
#else
  (void)word;
#endif
}

/* Cold on purpose: the loop around a free lock stays small. */
static DL_NOINLINE void wait_for(hybrid *lock) {
  uint32_t delay = 4;
  for (uint32_t spun = 0; spun < SPINS; spun += delay) {
    for (uint32_t i = 0; i < delay; ++i) dl_pause();
    if (delay < LONGEST) delay *= 2;
    uint32_t seen = FREE;
    if (atomic_load_explicit(&lock->insisting, memory_order_relaxed) == 0 &&
        atomic_load_explicit(&lock->state, memory_order_relaxed) == FREE &&
        atomic_compare_exchange_strong_explicit(&lock->state, &seen, HELD, memory_order_acquire, memory_order_relaxed))
      return;
  }
  atomic_fetch_add_explicit(&lock->insisting, 1, memory_order_relaxed);
  while (atomic_exchange_explicit(&lock->state, HELD_AND_SLEPT_FOR, memory_order_acquire) != FREE) sleep_on(&lock->state);
  atomic_fetch_sub_explicit(&lock->insisting, 1, memory_order_relaxed);
}

#define LOCK hybrid
DL_INLINE void start(LOCK *lock) { (void)lock; }
DL_INLINE void acquire(LOCK *lock, size_t who) {
  (void)who;
  uint32_t seen = FREE;
  if (atomic_load_explicit(&lock->insisting, memory_order_relaxed) == 0 &&
      atomic_compare_exchange_strong_explicit(&lock->state, &seen, HELD, memory_order_acquire, memory_order_relaxed))
    return;
  wait_for(lock);
}
DL_INLINE void release(LOCK *lock, size_t who) {
  (void)who;
  if (atomic_exchange_explicit(&lock->state, FREE, memory_order_release) == HELD_AND_SLEPT_FOR) wake_one(&lock->state);
}

#define VERSION v7
#define NAME "v7"
#define ABOUT "unfair within bounds, then futex"
#define FAIR false
#include "lock_loop.inc"
