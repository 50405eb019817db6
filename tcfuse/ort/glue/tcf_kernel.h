/* What stands before the text of every kernel.
 *
 * The compiler is given TCF_LEVEL (x86-64 level: 2, 3 or 4; 0 on other machines), TCF_LANES
 * (floats in a vector register) and TCF_SUFFIX (what distinguishes the levels' symbols).  The
 * math library defines the macros in the same words, as its tests do without this file. */
#include <stddef.h>
#include <stdint.h>

#define TCF_CAT_(a, b) a##b
#define TCF_CAT(a, b) TCF_CAT_(a, b)

/* TCF_KERNEL(name)(char* const* tensors, const int64_t* sizes, char* shared, char* local,
 *                  int64_t begin, int64_t end, int32_t* fault) { ... } */
#define TCF_KERNEL(name) \
  extern "C" __attribute__((visibility("hidden"))) void TCF_CAT(name, TCF_SUFFIX)
