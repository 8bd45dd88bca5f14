/* batch-1: see batch.inc. */
#define DL_BATCH 1
#include "batch.inc"
