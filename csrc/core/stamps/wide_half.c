/* 512 handlers: body wide, size half. */
#include "stamp.h"

#include "bodies/wide.inc"
#define DL_BODY_SIZE half
#define DL_BODY_ROUNDS 44
#include "stamp.inc"
