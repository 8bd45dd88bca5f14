/* What the labs run: round trip, rings, locks, pipeline. Each fills a task, hands it to dl_lab_run(), and reads it after. */
#ifndef DL_LABS_H
#define DL_LABS_H

#include "arm.h"
#include "lab.h"

/* One cache line, there and back `count` times. */
typedef struct dl_roundtrip {
  _Alignas(DL_APART) _Atomic uint64_t ball;
  _Alignas(DL_APART) uint64_t count;
} dl_roundtrip;
void dl_roundtrip_body(dl_lab *lab, size_t who);

/* `count` numbers 0, 1, 2... through a ring. Thread 0 pushes, thread 1 pops. */
typedef struct dl_transfer {
  void *ring;
  uint64_t count;
  uint64_t gap;      /* ticks between pushes; 0: as fast as it goes */
  int64_t *latency;  /* NULL, or ticks from push to pop of every item: the items are readings of the clock then */
  uint64_t received; /* by the consumer */
  uint64_t wrong;    /* items out of order, lost or twice */
  uint64_t checksum;
} dl_transfer;

typedef struct dl_ring_version {
  const char *name;
  const char *description;
  bool mask;    /* the capacity must be a power of two */
  bool threads; /* safe between two threads */
  void *(*open)(size_t capacity); /* NULL: no memory */
  void (*close)(void *ring);
  dl_lab_body body;   /* task: dl_transfer */
  dl_lab_body single; /* the same, both ends in one thread, item by item */
} dl_ring_version;
extern const dl_ring_version *const dl_ring_versions[]; /* ended by NULL */

/* What the consumer's checksum must be after `count` numbers. */
uint64_t dl_transfer_expected(uint64_t count);

typedef struct dl_lock_node dl_lock_node;

/* A counter under a lock. */
typedef struct dl_contest {
  void *lock;
  uint64_t each;     /* acquisitions per thread; 0: until `ticks` have passed */
  uint64_t ticks;
  uint64_t hold;     /* ticks inside */
  bool waits;        /* measure the wait of every acquisition */
  _Alignas(DL_APART) uint64_t counter; /* plain: right only under exclusion */
  uint64_t handoffs; /* times that the lock went to another thread than the last; under the lock */
  size_t last;
  _Alignas(DL_APART) uint64_t acquired[DL_LAB_THREADS];
  int64_t longest[DL_LAB_THREADS]; /* ticks */
} dl_contest;

typedef struct dl_lock_version {
  const char *name;
  const char *description;
  bool fair;
  void *(*open)(void);
  void (*close)(void *lock);
  dl_lab_body body; /* task: dl_contest */
} dl_lock_version;
extern const dl_lock_version *const dl_lock_versions[]; /* ended by NULL */

/* Generator -> dl_ring -> dispatching thread. */
typedef struct dl_pipeline {
  void *ring;
  const dl_loops *loops;
  void *state;
  const dl_packet *packets;
  size_t pool;
  uint64_t count;   /* packets to send: the pool again and again */
  uint64_t gap;     /* ticks between packets; 0: as fast as it goes */
  int64_t *latency; /* ticks from generated to dispatched, per packet */
  uint64_t received;
  uint64_t checksum;
} dl_pipeline;
void dl_pipeline_body(dl_lab *lab, size_t who);
void *dl_pipeline_ring(size_t capacity);
void dl_pipeline_ring_close(void *ring);

#endif
