/* A node of a session on the CPU: its creation, and its runs up to the loops. */
#include "tcf_call.h"
#include "tcf_refuse.h"
#include "tcf_run.h"

/* One node of one session; never changed after its creation, so any number of runs may share it. */
typedef struct {
  const TcfOp *op;
  TcfConstants constants;
  int asleep; /* the session's threads do not spin while they wait for work */
} Node;

/* The first version whose nodes can read the entries of their session. */
enum { ENTRIES_MINOR = 24 };

OrtStatus *tcf_compute(void *kernel, OrtKernelContext *context) {
  const Node *node = kernel;
  const TcfRegion *region = node->op->region;
  char *tensors[region->n_inputs + region->n_outputs];
  int64_t sizes[region->n_sizes + 1];
  TcfOutputs outputs;
  TCF_TRY(tcf_open_call(region, &node->constants, context, tensors, sizes, &outputs));
  return outputs.elements ? tcf_run(node->op, node->asleep, context, tensors, sizes) : NULL;
}

/* Initializers do not change, so a run need not ask for them. */
static OrtStatus *keep_constants(const Node *node, const OrtKernelInfo *info) {
  const TcfRegion *region = node->op->region;
  for (int k = 0, d = 0; k < region->n_inputs; d += region->ports[k++].rank) {
    int constant = 0;
    OrtValue *value = NULL;
    void *data;
    OrtStatus *status = ORT(KernelInfoGetConstantInput_tensor)(info, (size_t)k, &constant, &value);
    node->constants.data[k] = NULL;
    if (status) {
      ORT(ReleaseStatus)(status); /* it is read in every run then */
    } else if (constant && value) {
      TCF_TRY(tcf_read_input(region, value, (size_t)k, node->constants.dims + d, &data));
      node->constants.data[k] = data;
    }
  }
  return NULL;
}

/* Whether the session was told that its threads shall sleep; they spin unless they are told. */
static OrtStatus *learn_of_threads(const OrtKernelInfo *info, int *asleep) {
  OrtKeyValuePairs *entries = NULL;
  *asleep = 0;
  if (tcf_runtime_minor < ENTRIES_MINOR) return NULL;
  TCF_TRY(ORT(KernelInfo_GetConfigEntries)(info, &entries));
  const char *spin = ORT(GetKeyValue)(entries, "session.intra_op.allow_spinning");
  *asleep = spin && spin[0] == '0';
  ORT(ReleaseKeyValuePairs)(entries);
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
  node->constants.dims = (int64_t *)(node + 1);
  node->constants.data = (const void **)((char *)(node + 1) + dims_bytes);
  OrtStatus *status = learn_of_threads(info, &node->asleep);
  if (!status) status = keep_constants(node, info);
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
