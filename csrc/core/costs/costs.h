/* What single things cost on this machine: loads by distance, branches, calls, division, atomics, the kernel.
 * Each run computes something that is known beforehand, so that no compiler may leave the work out and no run that did other
 * work counts. */
#ifndef DL_COSTS_H
#define DL_COSTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lab.h"
#include "status.h"

#define DL_COST_TARGETS 1024

typedef struct dl_cost {
  int64_t ticks;
  uint64_t count;    /* how many of the thing were done */
  uint64_t checksum;
  uint64_t expected; /* the same by another way */
} dl_cost;

/* A random cycle through all lines of a piece of memory. */
typedef struct dl_chain {
  void *memory;
  size_t bytes;
  size_t lines;
  void *first;
} dl_chain;

/* `lines` lines of 64 bytes, `stride` bytes apart (a multiple of 64; from one page on, lines of following pages lie at
 * different offsets, so that they do not fall into the same few cache sets). huge: ask for huge pages, else forbid them. */
dl_status dl_chain_open(dl_chain *chain, size_t lines, size_t stride, bool huge, uint64_t seed);
void dl_chain_close(dl_chain *chain);

/* Runs once around (up to `warm` loads), then times `steps` loads, each of which needs the one before. */
void dl_chain_run(const dl_chain *chain, uint64_t warm, uint64_t steps, dl_cost *out);

/* kinds: 0 no branch, 1 taken every second time, 2 taken at random. DL_NO_MEMORY, DL_BAD_ARGUMENT. */
dl_status dl_cost_branch(int kind, uint64_t count, uint64_t seed, dl_cost *out);

/* kinds: 0 no call, 1 targets in turn, 2 targets at random. 1..DL_COST_TARGETS targets. */
dl_status dl_cost_call(int kind, uint64_t targets, uint64_t count, uint64_t seed, dl_cost *out);

/* kinds: 0 the chain without a division, 1 with a 64-bit one. */
dl_status dl_cost_divide(int kind, uint64_t count, dl_cost *out);

/* kinds: 0 plain add, 1 atomic add, both in one thread. */
dl_status dl_cost_add(int kind, uint64_t count, dl_cost *out);

/* A chain of arithmetic as in a loop that dispatches nothing. kinds: 0 its result is kept, 1 nobody looks at it, so that the
 * compiler may leave out the loop: checksum and expected are 0 then. */
dl_status dl_cost_empty(int kind, uint64_t count, dl_cost *out);

dl_status dl_cost_syscall(uint64_t count, dl_cost *out);

/* First write to each of `count` fresh pages of the usual size. */
dl_status dl_cost_fault(uint64_t count, dl_cost *out);

/* Every thread of the lab adds `each` to one counter, or to one of its own. */
typedef struct dl_adds {
  uint64_t each;
  bool apart;
  struct {
    _Alignas(DL_APART) _Atomic uint64_t n;
  } counters[DL_LAB_THREADS];
} dl_adds;
void dl_adds_body(dl_lab *lab, size_t who);

/* A burst: `sums` sums over `n` doubles, in order or in sixteen lanes; the sum of the last. */
double dl_burst(const double *data, size_t n, uint64_t sums, bool lanes);

/* `bursts` bursts, each after `idle_ns` of sleep that is not timed: ticks[i] of each. DL_BAD_ARGUMENT: a wrong sum. */
dl_status dl_bursts(uint64_t bursts, uint64_t sums, uint64_t idle_ns, bool lanes, int64_t *ticks);

DL_INLINE uint64_t dl_cost_random(uint64_t *state) {
  uint64_t x = *state += 0x9E3779B97F4A7C15u; /* splitmix64 (Steele, Lea, Flood 2014) */
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

#endif
