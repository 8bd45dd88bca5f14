/* table-grouped-256: see table_grouped.inc. */
#define DL_BATCH 256
#include "table_grouped.inc"
