/* guarded-4: speculative devirtualisation with 4 guesses. */
#define DL_GUARDS 4
#define DL_GUARDED dl_arm_guarded_4
#include "guarded.inc"
