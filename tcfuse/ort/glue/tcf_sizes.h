/* From the dimensions of a call's inputs to the values of its sizes. */
#ifndef TCF_SIZES_H
#define TCF_SIZES_H

#include "tcf_region.h"

/* The value of every size; 0 with a complaint when the definition does not allow the shapes. */
static inline int tcf_bind_sizes(const TcfRegion *region, const int64_t *dims, int64_t *sizes,
                                 TcfComplaint *complaint) {
  for (int s = 0; s < region->n_sizes; s++)
    if (region->origins[s] >= 0) sizes[s] = dims[region->origins[s]];
  if (region->derive) region->derive(sizes);
  return region->agree(dims, sizes, complaint);
}

/* The dimensions of all outputs; 0 with a complaint when one would be negative. */
static inline int tcf_output_dims(const TcfRegion *region, const int64_t *sizes, int64_t *dims,
                                  TcfComplaint *complaint) {
  region->shape(sizes, dims);
  for (int d = 0; d < region->n_output_dims; d++)
    TCF_REQUIRE_OF(complaint, dims[d] >= 0, "an output would have a negative size")
  return 1;
}

#endif
