/* What the batch arms learn, from times that are given instead of measured: "batch-ticks single-ticks stretch" a line, per packet in
 * 1/256; prints what was chosen after the trial, the pairs it took, and how long it rests. */
#include "learn.h"

#include <stdio.h>

#define BATCH 1024

int main(void) {
  unsigned long long batches, single;
  size_t odd;
  while (scanf("%llu %llu %zu", &batches, &single, &odd) == 3) {
    dl_learned l = {.batches = true};
    unsigned stretches = 0;
    while (l.left == 0 && stretches < 100) {
      /* every third stretch is cut short to `odd` packets where that is not 0 */
      const size_t m = odd > 0 && stretches % 3 == 2 ? odd : BATCH;
      const unsigned long long each = l.step % 2 == 0 ? batches : single;
      dl_learn(&l, BATCH, m, each * m / 256);
      ++stretches;
    }
    printf("%d %u %zu\n", l.batches, stretches, l.left);
  }
  return 0;
}
