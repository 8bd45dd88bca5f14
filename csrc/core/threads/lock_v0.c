/* v0: the C library's mutex. */
#include <pthread.h>

#include "lab.h"

#define LOCK pthread_mutex_t
DL_INLINE void start(LOCK *lock) { pthread_mutex_init(lock, NULL); }
DL_INLINE void acquire(LOCK *lock, size_t who) { (void)who; pthread_mutex_lock(lock); }
DL_INLINE void release(LOCK *lock, size_t who) { (void)who; pthread_mutex_unlock(lock); }

#define VERSION v0
#define NAME "v0"
#define ABOUT "pthread mutex"
#define FAIR false
#include "lock_loop.inc"
