/* batch-256: see batch.inc. */
#define DL_BATCH 256
#include "batch.inc"
