/* table-runs-1024: see table_runs.inc. */
#define DL_BATCH 1024
#include "table_runs.inc"
