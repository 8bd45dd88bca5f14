/* 512 handlers: body branchy, size fat. */
#include "stamp.h"

#include "bodies/branchy.inc"
#define DL_BODY_SIZE fat
#define DL_BODY_ROUNDS 84
#include "stamp.inc"
