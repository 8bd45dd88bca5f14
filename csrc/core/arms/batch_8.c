/* batch-8: see batch.inc. */
#define DL_BATCH 8
#include "batch.inc"
