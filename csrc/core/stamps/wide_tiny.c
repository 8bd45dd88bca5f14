/* 512 handlers: body wide, size tiny. */
#include "stamp.h"

#include "bodies/wide.inc"
#define DL_BODY_SIZE tiny
#define DL_BODY_ROUNDS 2
#include "stamp.inc"
