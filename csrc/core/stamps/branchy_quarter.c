/* 512 handlers: body branchy, size quarter. */
#include "stamp.h"

#include "bodies/branchy.inc"
#define DL_BODY_SIZE quarter
#define DL_BODY_ROUNDS 21
#include "stamp.inc"
