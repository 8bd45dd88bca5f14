/* v6: MCS. A queue of waiters, each spinning on a line of its own. */
#include "lab.h"

typedef struct node {
  _Alignas(DL_APART) _Atomic(struct node *) next;
  _Atomic bool waiting;
} node;

typedef struct queue {
  _Alignas(DL_APART) _Atomic(node *) last;
  node nodes[DL_LAB_THREADS];
} queue;

#define LOCK queue
DL_INLINE void start(LOCK *lock) { (void)lock; }
DL_INLINE void acquire(LOCK *lock, size_t who) {
  node *mine = &lock->nodes[who];
  atomic_store_explicit(&mine->next, NULL, memory_order_relaxed);
  atomic_store_explicit(&mine->waiting, true, memory_order_relaxed);
  node *before = atomic_exchange_explicit(&lock->last, mine, memory_order_acq_rel);
  if (before == NULL) return;
  atomic_store_explicit(&before->next, mine, memory_order_release);
  for (uint32_t turns = 1; atomic_load_explicit(&mine->waiting, memory_order_acquire); ++turns) {
    dl_pause();
    if ((turns & 1023) == 0) sched_yield();
  }
}
DL_INLINE void release(LOCK *lock, size_t who) {
  node *mine = &lock->nodes[who], *expected = mine;
  node *next = atomic_load_explicit(&mine->next, memory_order_acquire);
  if (next == NULL) {
    if (atomic_compare_exchange_strong_explicit(&lock->last, &expected, NULL, memory_order_release, memory_order_relaxed))
      return;
    while ((next = atomic_load_explicit(&mine->next, memory_order_acquire)) == NULL) dl_pause();
  }
  atomic_store_explicit(&next->waiting, false, memory_order_release);
}

#define VERSION v6
#define NAME "v6"
#define ABOUT "MCS queue"
#define FAIR true
#include "lock_loop.inc"
