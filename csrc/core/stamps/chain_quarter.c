/* 512 handlers: body chain, size quarter. */
#include "stamp.h"

#include "bodies/chain.inc"
#define DL_BODY_SIZE quarter
#define DL_BODY_ROUNDS 12
#include "stamp.inc"
