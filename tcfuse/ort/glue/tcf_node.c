/* A node of a session: its creation, and its runs up to the loops. */
#include "tcf_refuse.h"
#include "tcf_run.h"
#include "tcf_sizes.h"

/* One node of one session; never changed after its creation, so any number of runs may share it. */
typedef struct {
  const TcfOp *op;
  const void **constants; /* per input: data of an initializer, else NULL */
  int64_t *dims;          /* of all inputs; filled in for initializers */
} Node;

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

/* Data and dimensions of input `k`. */
static OrtStatus *read_input(const TcfRegion *region, OrtValue *value, size_t k, int64_t *dims,
                             void **data) {
  size_t rank = (size_t)region->ports[k].rank, found = 0;
  TCF_TRY(read_dims(value, rank, dims, &found));
  if (found != rank) return tcf_refuse_rank(region, k, found);
  return ORT(GetTensorMutableData)(value, data);
}

static OrtStatus *read_inputs(const Node *node, OrtKernelContext *context, int64_t *dims,
                              char **tensors) {
  const TcfRegion *region = node->op->region;
  for (int d = 0; d < region->n_input_dims; d++) dims[d] = node->dims[d];
  for (int k = 0, d = 0; k < region->n_inputs; d += region->ports[k++].rank) {
    tensors[k] = (char *)node->constants[k];
    if (tensors[k]) continue;
    OrtValue *value;
    void *data;
    TCF_TRY(ORT(KernelContext_GetInput)(context, (size_t)k, &value));
    TCF_TRY(read_input(region, value, (size_t)k, dims + d, &data));
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

/* Allocate the outputs; `elements` is how many they have together. */
static OrtStatus *make_outputs(const TcfRegion *region, OrtKernelContext *context,
                               const int64_t *sizes, char **tensors, int64_t *elements) {
  int64_t dims[region->n_output_dims + 1];
  const TcfPort *ports = region->ports + region->n_inputs;
  TcfComplaint complaint = {0};
  *elements = 0;
  if (!tcf_output_dims(region, sizes, dims, &complaint)) return tcf_refuse_dims(region, &complaint);
  for (int k = 0, d = 0; k < region->n_outputs; d += ports[k++].rank) {
    OrtValue *value;
    void *data;
    int64_t count = 1;
    TCF_TRY(ORT(KernelContext_GetOutput)(context, (size_t)k, dims + d, (size_t)ports[k].rank,
                                         &value));
    TCF_TRY(ORT(GetTensorMutableData)(value, &data));
    for (int e = d; e < d + ports[k].rank; e++) count *= dims[e];
    *elements += count;
    tensors[k] = data;
  }
  return NULL;
}

OrtStatus *tcf_compute(void *kernel, OrtKernelContext *context) {
  const Node *node = kernel;
  const TcfRegion *region = node->op->region;
  char *tensors[region->n_inputs + region->n_outputs];
  int64_t dims[region->n_input_dims + 1], sizes[region->n_sizes + 1], elements;
  TCF_TRY(read_inputs(node, context, dims, tensors));
  TCF_TRY(bind_sizes(region, dims, sizes));
  TCF_TRY(make_outputs(region, context, sizes, tensors + region->n_inputs, &elements));
  return elements ? tcf_run(node->op, context, tensors, sizes) : NULL;
}

/* Initializers do not change, so a run need not ask for them. */
static OrtStatus *keep_constants(Node *node, const OrtKernelInfo *info) {
  const TcfRegion *region = node->op->region;
  for (int k = 0, d = 0; k < region->n_inputs; d += region->ports[k++].rank) {
    int constant = 0;
    OrtValue *value = NULL;
    void *data;
    OrtStatus *status = ORT(KernelInfoGetConstantInput_tensor)(info, (size_t)k, &constant, &value);
    node->constants[k] = NULL;
    if (status) {
      ORT(ReleaseStatus)(status); /* it is read in every run then */
    } else if (constant && value) {
      TCF_TRY(read_input(region, value, (size_t)k, node->dims + d, &data));
      node->constants[k] = data;
    }
  }
  return NULL;
}

OrtStatus *tcf_create(const OrtCustomOp *op, OrtApi api, const OrtKernelInfo *info,
                      void **kernel) {
  const TcfRegion *region = ((const TcfOp *)op)->region;
  OrtAllocator *allocator; /* lent */
  (void)api;
  *kernel = NULL;
  TCF_TRY(ORT(GetAllocatorWithDefaultOptions)(&allocator));
  size_t dims_bytes = sizeof(int64_t) * (size_t)region->n_input_dims;
  size_t constants_bytes = sizeof(void *) * (size_t)region->n_inputs;
  Node *node = allocator->Alloc(allocator, sizeof(Node) + dims_bytes + constants_bytes);
  if (!node) return tcf_refuse(region, "there is no memory for a node");
  node->op = (const TcfOp *)op;
  node->dims = (int64_t *)(node + 1);
  node->constants = (const void **)((char *)(node + 1) + dims_bytes);
  OrtStatus *status = keep_constants(node, info);
  if (status) {
    allocator->Free(allocator, node);
    return status;
  }
  *kernel = node;
  return NULL;
}

void tcf_destroy(void *kernel) {
  OrtAllocator *allocator;
  OrtStatus *status = kernel ? ORT(GetAllocatorWithDefaultOptions)(&allocator) : NULL;
  if (status) {
    ORT(ReleaseStatus)(status);
  } else if (kernel) {
    allocator->Free(allocator, kernel);
  }
}
