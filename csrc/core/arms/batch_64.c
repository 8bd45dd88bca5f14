/* batch-64: see batch.inc. */
#define DL_BATCH 64
#include "batch.inc"
