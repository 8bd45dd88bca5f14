/* The few compiler-specific words the core uses, each with the reason it exists. */
#ifndef DL_COMPILER_H
#define DL_COMPILER_H

/* Dispatch must be part of the loop that is timed: a call here would be measured as part of the arm. */
#define DL_INLINE static inline __attribute__((always_inline))

/* A handler is code somebody else wrote: the loop must reach it by a call, never by inlining it. */
#define DL_NOINLINE __attribute__((noinline))

/* The whole object in one cache line, so that arms differ by what they do and not by which objects straddle. */
#define DL_CACHE_LINE 64

/* Hides where a value came from: without it the compiler may fold the empty dispatch of the loop floor into vector code
 * that no real arm could use. */
#define DL_OPAQUE(value) __asm__ volatile("" : "+r"(value))

#define DL_LIKELY(x) __builtin_expect(!!(x), 1)

#define DL_CAT2(a, b) a##b
#define DL_CAT(a, b) DL_CAT2(a, b)

#endif
