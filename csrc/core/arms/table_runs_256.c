/* table-runs-256: see table_runs.inc. */
#define DL_BATCH 256
#include "table_runs.inc"
