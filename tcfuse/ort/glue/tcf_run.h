#ifndef TCF_RUN_H
#define TCF_RUN_H

#include "tcf_region.h"

/* Run the loops of an operator whose outputs are allocated; `tensors` are inputs, then outputs.
 * Threads that are `asleep` between loops get only long ones. */
TCF_HIDDEN OrtStatus *tcf_run(const TcfOp *op, int asleep, OrtKernelContext *context,
                              char *const *tensors, const int64_t *sizes);

#endif
