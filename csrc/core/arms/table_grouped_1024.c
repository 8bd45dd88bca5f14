/* table-grouped-1024: see table_grouped.inc. */
#define DL_BATCH 1024
#include "table_grouped.inc"
