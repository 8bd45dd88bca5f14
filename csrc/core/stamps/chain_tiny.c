/* 512 handlers: body chain, size tiny. */
#include "stamp.h"

#include "bodies/chain.inc"
#define DL_BODY_SIZE tiny
#define DL_BODY_ROUNDS 2
#include "stamp.inc"
