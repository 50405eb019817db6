/* Inputs, sizes and outputs of one run, whatever it runs on. */
#include "tcf_call.h"

#include "tcf_refuse.h"
#include "tcf_sizes.h"

/* Dimensions of a tensor through the calls every version has: they allocate. */
static OrtStatus *read_dims_slowly(const OrtValue *value, size_t rank, int64_t *dims,
                                   size_t *found) {
  OrtTensorShape *shape;
  TCF_TRY(ORT(GetTensorTypeAndShape)(value, &shape));
  OrtStatus *status = ORT(GetDimensionsCount)(shape, found);
  if (!status && *found == rank) status = ORT(GetDimensions)(shape, dims, rank);
  ORT(ReleaseTensorTypeAndShapeInfo)(shape);
  return status;
}

static OrtStatus *read_dims(const OrtValue *value, size_t rank, int64_t *dims, size_t *found) {
  if (tcf_runtime_minor < 24) return read_dims_slowly(value, rank, dims, found);
  int type;
  const int64_t *lent = NULL;
  TCF_TRY(ORT(GetTensorElementTypeAndShapeDataReference)(value, &type, &lent, found));
  if (*found == rank)
    for (size_t d = 0; d < rank; d++) dims[d] = lent[d];
  return NULL;
}

OrtStatus *tcf_read_input(const TcfRegion *region, OrtValue *value, size_t k, int64_t *dims,
                          void **data) {
  size_t rank = (size_t)region->ports[k].rank, found = 0;
  TCF_TRY(read_dims(value, rank, dims, &found));
  if (found != rank) return tcf_refuse_rank(region, k, found);
  return ORT(GetTensorMutableData)(value, data);
}

static OrtStatus *read_inputs(const TcfRegion *region, const TcfConstants *constants,
                              OrtKernelContext *context, int64_t *dims, char **tensors) {
  for (int d = 0; constants && d < region->n_input_dims; d++) dims[d] = constants->dims[d];
  for (int k = 0, d = 0; k < region->n_inputs; d += region->ports[k++].rank) {
    tensors[k] = constants ? (char *)constants->data[k] : NULL;
    if (tensors[k]) continue;
    OrtValue *value;
    void *data;
    TCF_TRY(ORT(KernelContext_GetInput)(context, (size_t)k, &value));
    TCF_TRY(tcf_read_input(region, value, (size_t)k, dims + d, &data));
    tensors[k] = data;
  }
  return NULL;
}

/* The value of every size; refuses shapes that the model does not allow. */
static OrtStatus *bind_sizes(const TcfRegion *region, const int64_t *dims, int64_t *sizes) {
  TcfComplaint complaint = {0};
  return tcf_bind_sizes(region, dims, sizes, &complaint) ? NULL
                                                         : tcf_refuse_dims(region, &complaint);
}

static OrtStatus *make_outputs(const TcfRegion *region, OrtKernelContext *context,
                               const int64_t *sizes, char **tensors, TcfOutputs *outputs) {
  int64_t dims[region->n_output_dims + 1];
  const TcfPort *ports = region->ports + region->n_inputs;
  TcfComplaint complaint = {0};
  *outputs = (TcfOutputs){0};
  if (!tcf_output_dims(region, sizes, dims, &complaint)) return tcf_refuse_dims(region, &complaint);
  for (int k = 0, d = 0; k < region->n_outputs; d += ports[k++].rank) {
    OrtValue *value;
    void *data;
    int64_t count = 1;
    TCF_TRY(ORT(KernelContext_GetOutput)(context, (size_t)k, dims + d, (size_t)ports[k].rank,
                                         &value));
    TCF_TRY(ORT(GetTensorMutableData)(value, &data));
    for (int e = d; e < d + ports[k].rank; e++) count *= dims[e];
    outputs->elements += count;
    if (k == 0) outputs->first = value;
    tensors[k] = data;
  }
  return NULL;
}

OrtStatus *tcf_open_call(const TcfRegion *region, const TcfConstants *constants,
                         OrtKernelContext *context, char **tensors, int64_t *sizes,
                         TcfOutputs *outputs) {
  int64_t dims[region->n_input_dims + 1];
  TCF_TRY(read_inputs(region, constants, context, dims, tensors));
  TCF_TRY(bind_sizes(region, dims, sizes));
  return make_outputs(region, context, sizes, tensors + region->n_inputs, outputs);
}
