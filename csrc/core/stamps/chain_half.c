/* 512 handlers: body chain, size half. */
#include "stamp.h"

#include "bodies/chain.inc"
#define DL_BODY_SIZE half
#define DL_BODY_ROUNDS 24
#include "stamp.inc"
