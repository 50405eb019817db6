/* What every run does before it computes: inputs read, sizes bound and checked, outputs made. */
#ifndef TCF_CALL_H
#define TCF_CALL_H

#include "tcf_region.h"

/* What is known of the inputs since a node was made. */
typedef struct {
  const void **data; /* per input: an initializer's data, else NULL */
  int64_t *dims;     /* of all inputs; filled in for initializers */
} TcfConstants;

typedef struct {
  int64_t elements; /* of all outputs together */
  OrtValue *first;  /* the first output; lent */
} TcfOutputs;

/* Data and dimensions of input `k`. */
TCF_HIDDEN OrtStatus *tcf_read_input(const TcfRegion *region, OrtValue *value, size_t k,
                                     int64_t *dims, void **data);

/* Fill in `tensors` (inputs, then outputs) and `sizes`; shapes that the model does not allow are
 * refused.  `constants` may be NULL. */
TCF_HIDDEN OrtStatus *tcf_open_call(const TcfRegion *region, const TcfConstants *constants,
                                    OrtKernelContext *context, char **tensors, int64_t *sizes,
                                    TcfOutputs *outputs);

#endif
