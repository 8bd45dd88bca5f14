/* table-grouped-64: see table_grouped.inc. */
#define DL_BATCH 64
#include "table_grouped.inc"
