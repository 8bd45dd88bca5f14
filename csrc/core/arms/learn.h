/* When batches pay, learned by the clock: stretches of packets run by turns in batches and one by one, and the faster way is kept
 * until the next trial. Runs and small groups, where grouping has nothing to win, are found out by what they cost, and so are bodies
 * that hide a wrong guess of the processor, which no count of groups could tell.
 *
 * A trial takes DL_LEARN_PAIRS pairs of stretches, and the time between two trials is DL_LEARN_REST as long: were batches half as
 * slow again, trials would cost 0.8 %. What an arm answers never depends on what it learned. */
#ifndef DL_ARMS_LEARN_H
#define DL_ARMS_LEARN_H

#include "arm.h"

#define DL_LEARN_PAIRS 8
#define DL_LEARN_REST 32
#define DL_LEARN_SHORTEST 256u /* packets: what reading the clock costs is small against such a stretch */

typedef struct dl_learned {
  size_t left;     /* packets until the next trial */
  bool batches;    /* what the last trial chose; true before the first */
  uint32_t step;   /* stretches of this trial that are done: even ones in batches, odd ones one by one */
  uint32_t wins;   /* pairs in which batches took less than 0.97 of the time */
  size_t packets;  /* and ticks per packet of the last stretch in batches, in 1/256 */
  uint64_t cost;
} dl_learned;

DL_INLINE size_t dl_learn_stretch(size_t batch) {
  return batch > DL_LEARN_SHORTEST ? batch : DL_LEARN_SHORTEST;
}

/* A stretch of m packets of the trial took so many ticks. */
DL_INLINE void dl_learn(dl_learned *l, size_t batch, size_t m, uint64_t ticks) {
  const uint64_t cost = ticks * 256 / m;
  if (l->step % 2 == 0) {
    l->packets = m;
    l->cost = cost;
  } else if (m != l->packets) { /* no pair: what is cut short at the end of a call is compared with its like */
    --l->step;
    return;
  } else {
    l->wins += l->cost * 100 < cost * 97;
  }
  if (++l->step < 2 * DL_LEARN_PAIRS) return;
  l->batches = l->wins >= DL_LEARN_PAIRS * 3 / 4;
  l->left = dl_learn_stretch(batch) * 2 * DL_LEARN_PAIRS * DL_LEARN_REST;
  l->step = l->wins = 0;
}

#endif
