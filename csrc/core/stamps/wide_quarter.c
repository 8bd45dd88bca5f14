/* 512 handlers: body wide, size quarter. */
#include "stamp.h"

#include "bodies/wide.inc"
#define DL_BODY_SIZE quarter
#define DL_BODY_ROUNDS 20
#include "stamp.inc"
