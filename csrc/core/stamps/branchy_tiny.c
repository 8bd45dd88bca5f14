/* 512 handlers: body branchy, size tiny. */
#include "stamp.h"

#include "bodies/branchy.inc"
#define DL_BODY_SIZE tiny
#define DL_BODY_ROUNDS 6
#include "stamp.inc"
