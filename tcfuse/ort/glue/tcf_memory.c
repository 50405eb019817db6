/* The four functions that compilers call for copies of structures and fills, even freestanding.
 *
 * Hidden, so that this library neither needs a libc nor lends these to anybody.  Compiled without
 * the passes that recognise a copying loop: they would turn a body into a call of itself. */
#include <stddef.h>
#include <stdint.h>

#define TCF_HIDDEN __attribute__((visibility("hidden")))

typedef uint8_t Block __attribute__((vector_size(16), aligned(1), may_alias));

enum { BLOCK = 16 };

TCF_HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
  char *t = to;
  const char *f = from;
  if (bytes >= BLOCK) {
    /* The last block may overlap the one before, so there is no tail. */
    Block last = *(const Block *)(f + bytes - BLOCK);
    for (size_t k = 0; k + BLOCK < bytes; k += BLOCK) *(Block *)(t + k) = *(const Block *)(f + k);
    *(Block *)(t + bytes - BLOCK) = last;
  } else {
    for (size_t k = 0; k < bytes; k++) t[k] = f[k];
  }
  return to;
}

TCF_HIDDEN void *memmove(void *to, const void *from, size_t bytes) {
  char *t = to;
  const char *f = from;
  if ((uintptr_t)t - (uintptr_t)f >= bytes) {
    /* Ascending is safe unless `to` lies inside the source. */
    for (size_t k = 0; k < bytes; k++) t[k] = f[k];
  } else {
    for (size_t k = bytes; k > 0; k--) t[k - 1] = f[k - 1];
  }
  return to;
}

TCF_HIDDEN void *memset(void *to, int value, size_t bytes) {
  char *t = to;
  if (bytes >= BLOCK) {
    Block block = (Block){0} + (uint8_t)value;
    for (size_t k = 0; k + BLOCK < bytes; k += BLOCK) *(Block *)(t + k) = block;
    *(Block *)(t + bytes - BLOCK) = block;
  } else {
    for (size_t k = 0; k < bytes; k++) t[k] = (char)value;
  }
  return to;
}

TCF_HIDDEN int memcmp(const void *a, const void *b, size_t bytes) {
  const uint8_t *p = a, *q = b;
  for (size_t k = 0; k < bytes; k++)
    if (p[k] != q[k]) return p[k] < q[k] ? -1 : 1;
  return 0;
}
