/* guarded-2: speculative devirtualisation with 2 guesses. */
#define DL_GUARDS 2
#define DL_GUARDED dl_arm_guarded_2
#include "guarded.inc"
