/* guarded-1: speculative devirtualisation with 1 guess. */
#define DL_GUARDS 1
#define DL_GUARDED dl_arm_guarded_1
#include "guarded.inc"
