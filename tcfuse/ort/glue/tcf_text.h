/* Building a message without a libc. */
#ifndef TCF_TEXT_H
#define TCF_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  size_t length;
  char text[512]; /* always ends in NUL; what does not fit is cut off */
} TcfText;

static inline void tcf_put(TcfText *out, const char *text) {
  while (*text && out->length + 1 < sizeof out->text) out->text[out->length++] = *text++;
  out->text[out->length] = 0;
}

static inline void tcf_put_number(TcfText *out, int64_t number) {
  char digits[24];
  size_t at = sizeof digits - 1;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  digits[at] = 0;
  do digits[--at] = (char)('0' + rest % 10);
  while (rest /= 10);
  if (number < 0) digits[--at] = '-';
  tcf_put(out, digits + at);
}

#endif
