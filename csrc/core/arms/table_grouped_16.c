/* table-grouped-16: see table_grouped.inc. */
#define DL_BATCH 16
#include "table_grouped.inc"
