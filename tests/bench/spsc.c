/* Numbers through dl_ring and through boost::lockfree::spsc_queue (spsc.cpp), 1024 slots, two pinned threads, rounds
 * interleaved. spsc ITEMS ROUNDS CPU CPU prints a line per round and queue: name, million items per second. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "dispatchlab/dl_ring.h"

typedef struct queue {
  const char *name;
  void (*produce)(uint64_t items);
  uint64_t (*consume)(uint64_t items); /* how many were wrong */
} queue;

extern void boost_produce(uint64_t), boost_arrays_produce(uint64_t);
extern uint64_t boost_consume(uint64_t), boost_arrays_consume(uint64_t);

enum { AT_ONCE = 128 }; /* as in spsc.cpp */

static dl_ring ring;

static void one_produce(uint64_t items) {
  for (uint64_t i = 0; i < items; ++i)
    while (!dl_ring_push(&ring, &i)) {
    }
}

static uint64_t one_consume(uint64_t items) {
  uint64_t wrong = 0;
  for (uint64_t i = 0, item = 0; i < items; ++i) {
    while (!dl_ring_pop(&ring, &item)) {
    }
    wrong += item != i;
  }
  return wrong;
}

static void arrays_produce(uint64_t items) {
  uint64_t some[AT_ONCE];
  for (uint64_t i = 0; i < items;) {
    size_t n = 0;
    for (; n < AT_ONCE && i < items; ++n) some[n] = i++;
    for (size_t sent = 0; sent < n;) sent += dl_ring_push_many(&ring, some + sent, n - sent);
  }
}

static uint64_t arrays_consume(uint64_t items) {
  uint64_t some[AT_ONCE], wrong = 0;
  for (uint64_t i = 0; i < items;) {
    const size_t n = dl_ring_pop_many(&ring, some, AT_ONCE);
    for (size_t k = 0; k < n; ++k) wrong += some[k] != i++;
  }
  return wrong;
}

static void place_produce(uint64_t items) {
  for (uint64_t i = 0; i < items;) {
    size_t n = items - i < AT_ONCE ? (size_t)(items - i) : AT_ONCE;
    uint64_t *to = dl_ring_room(&ring, &n, sizeof *to);
    for (size_t k = 0; k < n; ++k) to[k] = i++;
    if (n != 0) dl_ring_show(&ring, n);
  }
}

static uint64_t place_consume(uint64_t items) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < items;) {
    size_t n = AT_ONCE;
    const uint64_t *from = dl_ring_ready(&ring, &n, sizeof *from);
    for (size_t k = 0; k < n; ++k) wrong += from[k] != i++;
    if (n != 0) dl_ring_give_back(&ring, n);
  }
  return wrong;
}

static const queue queues[] = {
    {"dl_ring", one_produce, one_consume},
    {"dl_ring-arrays", arrays_produce, arrays_consume},
    {"dl_ring-in-place", place_produce, place_consume},
    {"boost", boost_produce, boost_consume},
    {"boost-arrays", boost_arrays_produce, boost_arrays_consume},
};

static int cpus[2];
static const queue *now;
static uint64_t items, wrong;
static pthread_barrier_t both;
static struct timespec begin, end;

static void *side(void *consumes) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpus[consumes != NULL], &one);
  pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  pthread_barrier_wait(&both);
  if (consumes == NULL) {
    clock_gettime(CLOCK_MONOTONIC, &begin);
    now->produce(items);
  } else {
    wrong += now->consume(items);
    clock_gettime(CLOCK_MONOTONIC, &end);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 5 || !dl_ring_open(&ring, 1024, sizeof(uint64_t))) return 2;
  items = strtoull(argv[1], NULL, 10);
  cpus[0] = atoi(argv[3]), cpus[1] = atoi(argv[4]);
  pthread_barrier_init(&both, NULL, 2);
  for (int round = 0; round < atoi(argv[2]); ++round)
    for (size_t i = 0; i < sizeof queues / sizeof *queues; ++i) {
      now = &queues[i];
      pthread_t producer, consumer;
      pthread_create(&producer, NULL, side, NULL);
      pthread_create(&consumer, NULL, side, &both);
      pthread_join(producer, NULL);
      pthread_join(consumer, NULL);
      const double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
      printf("%s %.3f\n", now->name, (double)items / seconds / 1e6);
    }
  dl_ring_close(&ring);
  return wrong != 0;
}
