/* table-runs-4096: see table_runs.inc. */
#define DL_BATCH 4096
#include "table_runs.inc"
