/* The instruction TLB by cpuid: AMD64 manual 3, function 8000_0005h; Intel SDM 2A, leaf 18h. */
#include "itlb.h"

#if defined(__x86_64__)
#include <cpuid.h>

enum { INSTRUCTION = 2, AMD_FIRST_TLB = 0x80000005, INTEL_TLB = 0x18 };

static int amd(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid(AMD_FIRST_TLB, &a, &b, &c, &d)) return -1;
  return (b & 0xFF) != 0 ? (int)(b & 0xFF) : -1;
}

static int intel(void) {
  unsigned a, b, c, d, last;
  if (!__get_cpuid_count(INTEL_TLB, 0, &last, &b, &c, &d)) return -1;
  for (unsigned n = 0; n <= last && n < 64; ++n) {
    if (!__get_cpuid_count(INTEL_TLB, n, &a, &b, &c, &d)) return -1;
    const unsigned type = d & 0x1F, level = (d >> 5) & 7;
    if (type == INSTRUCTION && level == 1 && (b & 1)) return (int)((b >> 16) * c);
  }
  return -1;
}

int dl_itlb_entries(void) {
  const int found = intel();
  return found > 0 ? found : amd();
}
#else
int dl_itlb_entries(void) { return -1; }
#endif
