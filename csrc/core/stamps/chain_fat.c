/* 512 handlers: body chain, size fat. */
#include "stamp.h"

#include "bodies/chain.inc"
#define DL_BODY_SIZE fat
#define DL_BODY_ROUNDS 48
#include "stamp.inc"
