/* 512 handlers: body branchy, size half. */
#include "stamp.h"

#include "bodies/branchy.inc"
#define DL_BODY_SIZE half
#define DL_BODY_ROUNDS 42
#include "stamp.inc"
