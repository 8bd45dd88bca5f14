/* 512 handlers: body tally, size tiny. */
#include "stamp.h"

#include "bodies/tally.inc"
#define DL_BODY_SIZE tiny
#define DL_BODY_ROUNDS 2
#include "stamp.inc"
