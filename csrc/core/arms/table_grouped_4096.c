/* table-grouped-4096: see table_grouped.inc. */
#define DL_BATCH 4096
#include "table_grouped.inc"
