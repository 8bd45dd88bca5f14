/* 512 handlers: body wide, size fat. */
#include "stamp.h"

#include "bodies/wide.inc"
#define DL_BODY_SIZE fat
#define DL_BODY_ROUNDS 94
#include "stamp.inc"
