/* The registry of arms. */
#include "arm.h"

#include <string.h>

#define DL_ARM(name) extern const dl_arm dl_arm_##name;
#include "arms.def"
#undef DL_ARM

const dl_arm *const dl_arms[] = {
#define DL_ARM(name) &dl_arm_##name,
#include "arms.def"
#undef DL_ARM
    NULL,
};

const dl_arm *dl_arm_find(const char *name) {
  for (const dl_arm *const *arm = dl_arms; *arm != NULL; ++arm)
    if (strcmp((*arm)->name, name) == 0) return *arm;
  return NULL;
}
