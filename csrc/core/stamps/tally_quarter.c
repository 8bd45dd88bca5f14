/* 512 handlers: body tally, size quarter. */
#include "stamp.h"

#include "bodies/tally.inc"
#define DL_BODY_SIZE quarter
#define DL_BODY_ROUNDS 12
#include "stamp.inc"
