/* table-runs-16: see table_runs.inc. */
#define DL_BATCH 16
#include "table_runs.inc"
