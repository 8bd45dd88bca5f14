/* table-runs-64: see table_runs.inc. */
#define DL_BATCH 64
#include "table_runs.inc"
