/* Threads are made and pinned before anything is timed, and joined whatever happens. */
#include "lab.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "affinity.h"

typedef struct seat {
  dl_lab *lab;
  size_t who;
  pthread_t thread;
} seat;

static bool pin(int32_t cpu) {
  dl_affinity own;
  if (dl_affinity_save(&own) != DL_OK) return false;
  const dl_status status = dl_affinity_pin(&own, cpu);
  dl_affinity_free(&own);
  return status == DL_OK || status == DL_NOT_SUPPORTED;
}

static void *run(void *opaque) {
  const seat *s = opaque;
  dl_lab *lab = s->lab;
  if (!pin(lab->cpus[s->who])) atomic_store(&lab->refused, 1);
  atomic_fetch_add(&lab->ready, 1);
  uint32_t turns = 0;
  while (!atomic_load_explicit(&lab->go, memory_order_acquire) && dl_lab_wait(lab, &turns)) {
  }
  lab->begin[s->who] = dl_ticks_begin();
  if (!dl_lab_stopped(lab)) lab->body(lab, s->who);
  lab->end[s->who] = dl_ticks_end();
  atomic_fetch_add(&lab->done, 1);
  return NULL;
}

static void doze(void) {
  const struct timespec little = {0, 2000000};
  nanosleep(&little, NULL);
}

/* Waits until `count` reaches `made`; false when the hook stopped the lab, which is stopped then. */
static bool await(dl_lab *lab, _Atomic uint32_t *count, uint32_t made, dl_lab_hook hook, void *context) {
  bool going = true;
  while (atomic_load(count) < made) {
    if (count == &lab->done) doze();
    else sched_yield();
    if (going && hook != NULL && !hook(context)) going = false;
    if (!going) atomic_store(&lab->stop, true);
  }
  return going;
}

static void sum_up(dl_lab *lab) {
  uint64_t first = lab->begin[0], last = lab->end[0];
  for (size_t i = 1; i < lab->threads; ++i) {
    if ((int64_t)(lab->begin[i] - first) < 0) first = lab->begin[i];
    if ((int64_t)(lab->end[i] - last) > 0) last = lab->end[i];
  }
  lab->elapsed = (int64_t)(last - first);
}

dl_status dl_lab_run(dl_lab *lab, dl_lab_hook hook, void *context) {
  if (lab->threads < 1 || lab->threads > DL_LAB_THREADS) return DL_BAD_ARGUMENT;
  seat seats[DL_LAB_THREADS];
  size_t made = 0;
  int why = 0;
  const uint64_t before = dl_ticks_begin();
  for (; made < lab->threads && why == 0; made += why == 0) {
    seats[made].lab = lab;
    seats[made].who = made;
    why = pthread_create(&seats[made].thread, NULL, run, &seats[made]);
  }
  if (why != 0) atomic_store(&lab->stop, true);
  bool going = await(lab, &lab->ready, (uint32_t)made, hook, context);
  if (atomic_load(&lab->refused)) atomic_store(&lab->stop, true);
  atomic_store_explicit(&lab->go, true, memory_order_release);
  going = await(lab, &lab->done, (uint32_t)made, going ? hook : NULL, context) && going;
  for (size_t i = 0; i < made; ++i) pthread_join(seats[i].thread, NULL);
  lab->whole = (int64_t)(dl_ticks_end() - before);
  if (why != 0 || atomic_load(&lab->refused)) {
    errno = why != 0 ? why : EINVAL;
    return DL_OS_ERROR;
  }
  sum_up(lab);
  return going ? DL_OK : DL_STOPPED;
}
