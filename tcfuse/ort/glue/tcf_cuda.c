/* A node of a session on a GPU.
 *
 * A run only launches: it neither waits nor allocates (scratch comes from the session's arena), so
 * it may be captured into a CUDA graph.  Hence a kernel that finds an index out of range says so in
 * a flag that the next run of the node reads. */
#include "tcf_cuda.h"

#include "tcf_call.h"
#include "tcf_refuse.h"

enum { LARGEST_ALIGNMENT = 256, FIRST_WITH_SCRATCH = 18 };
#define MOST_BLOCKS ((int64_t)0x7fffffff)

typedef struct {
  const TcfRegion *region;
  TcfModule *module;
  int32_t *fault; /* written by kernels */
  CUdeviceptr device_fault;
} Node;

static int serves(const TcfRegion *region) {
  for (int k = 0; k < tcf_count_devices(); k++) {
    TcfDevice device;
    if (!tcf_describe_device(k, &device) && tcf_choose_image(region->cuda, &device)) return 1;
  }
  return 0;
}

/* The device that the node's provider works on: the one of its allocator. */
static OrtStatus *allocator_device(const OrtKernelInfo *info, int *ordinal) {
  OrtAllocator *allocator;
  const OrtMemoryInfo *memory = NULL; /* lent */
  TCF_TRY(ORT(KernelInfoGetAllocator)(info, ORT_MEMORY_DEFAULT, &allocator));
  OrtStatus *status = ORT(AllocatorGetInfo)(allocator, &memory);
  if (!status) status = ORT(MemoryInfoGetId)(memory, ordinal);
  ORT(ReleaseAllocator)(allocator);
  return status;
}

static OrtStatus *device_of(const OrtKernelInfo *info, int *ordinal) {
  CUdevice current;
  if (tcf_runtime_minor >= FIRST_WITH_SCRATCH) return allocator_device(info, ordinal);
  *ordinal = tcf_driver.context_device(&current) ? 0 : current; /* a handle is the ordinal */
  return NULL;
}

/* Memory that the GPU writes and the next run reads. */
static OrtStatus *make_flag(Node *node) {
  void *memory = NULL;
  CUresult result = tcf_enter_context(node->module);
  if (!result) {
    result = tcf_driver.host_alloc(&memory, sizeof(int32_t),
                                   CU_MEMHOST_PORTABLE | CU_MEMHOST_MAPPED);
    if (!result) result = tcf_driver.host_pointer(&node->device_fault, memory, 0);
    if (result && memory) tcf_driver.host_free(memory);
    tcf_leave_context();
  }
  if (result)
    return tcf_driver_failed(node->region, &node->module->device, "pinned memory", result, NULL);
  node->fault = memory;
  *node->fault = 0;
  return NULL;
}

static OrtStatus *fill_node(Node *node, const OrtKernelInfo *info) {
  int ordinal = 0;
  const OrtLogger *logger = NULL; /* lent */
  TCF_TRY(device_of(info, &ordinal));
  TCF_TRY(ORT(KernelInfo_GetLogger)(info, &logger));
  TCF_TRY(tcf_acquire_module(node->region, ordinal, logger, &node->module));
  OrtStatus *status = make_flag(node);
  if (status) tcf_release_module(node->module);
  return status;
}

static OrtStatus *create(const OrtCustomOp *op, OrtApi api, const OrtKernelInfo *info,
                         void **kernel) {
  OrtAllocator *allocator; /* lent */
  (void)api;
  *kernel = NULL;
  TCF_TRY(ORT(GetAllocatorWithDefaultOptions)(&allocator));
  Node *node = allocator->Alloc(allocator, sizeof(Node));
  if (!node) return tcf_refuse(((const TcfOp *)op)->region, "there is no memory for a node");
  *node = (Node){.region = ((const TcfOp *)op)->region};
  OrtStatus *status = fill_node(node, info);
  if (status) {
    allocator->Free(allocator, node);
    return status;
  }
  *kernel = node;
  return NULL;
}

static void destroy(void *kernel) {
  OrtAllocator *allocator;
  Node *node = kernel;
  OrtStatus *status = node ? ORT(GetAllocatorWithDefaultOptions)(&allocator) : NULL;
  if (status) {
    ORT(ReleaseStatus)(status);
  } else if (node) {
    if (!tcf_enter_context(node->module)) {
      tcf_driver.host_free(node->fault);
      tcf_leave_context();
    }
    tcf_release_module(node->module);
    allocator->Free(allocator, node);
  }
}

/* A power of two that divides the address of every tensor. */
static int64_t common_alignment(char *const *tensors, int n) {
  uintptr_t bits = LARGEST_ALIGNMENT;
  for (int k = 0; k < n; k++) bits |= (uintptr_t)tensors[k];
  return (int64_t)(bits & (0 - bits));
}

/* The grid of a launch on a device. */
static int64_t count_blocks(const TcfLaunch *launch, const TcfGrid *grid, const TcfDevice *device) {
  int64_t most = MOST_BLOCKS, each = launch->blocks_per_multiprocessor;
  if (each) most = tcf_min(most, each * device->multiprocessors);
  return tcf_min(grid->blocks, most);
}

/* One launch a phase: the first whose condition holds. */
static OrtStatus *launch_phases(const Node *node, CUstream stream, char **tensors, int64_t *sizes,
                                char *scratch) {
  const TcfRegion *region = node->region;
  const TcfModule *module = node->module;
  int n_tensors = region->n_inputs + region->n_outputs, launched = -1, at = 0;
  void *params[n_tensors + 2 + region->n_sizes];
  CUdeviceptr fault = node->device_fault;
  for (int k = 0; k < n_tensors; k++) params[at++] = &tensors[k];
  params[at++] = &scratch;
  params[at++] = &fault;
  for (int k = 0; k < region->n_sizes; k++) params[at++] = &sizes[k];
  int64_t alignment = common_alignment(tensors, n_tensors);

  for (int k = 0; k < region->cuda->n_launches; k++) {
    const TcfLaunch *launch = &region->cuda->launches[k];
    const TcfFunction *function = &module->functions[k];
    TcfGrid grid;
    if (launch->phase == launched) continue;
    if (!launch->plan(sizes, alignment, function->shared_limit, &grid)) continue;
    launched = launch->phase;
    int64_t blocks = count_blocks(launch, &grid, &module->device);
    if (blocks <= 0) continue;
    CUresult result =
        tcf_driver.launch(function->handle, (unsigned)blocks, 1, 1, (unsigned)launch->block, 1, 1,
                          (unsigned)grid.shared_bytes, stream, params, NULL);
    if (result)
      return tcf_driver_failed(region, &module->device, launch->symbol, result, NULL);
  }
  return NULL;
}

/* The same in the module's context, which as a rule is the current one. */
static OrtStatus *launch_in_context(const Node *node, CUstream stream, char **tensors,
                                    int64_t *sizes, char *scratch) {
  CUcontext current = NULL;
  if (!tcf_driver.current_context(&current) && current == node->module->context)
    return launch_phases(node, stream, tensors, sizes, scratch);
  CUresult result = tcf_enter_context(node->module);
  if (result)
    return tcf_driver_failed(node->region, &node->module->device, "no context", result, NULL);
  OrtStatus *status = launch_phases(node, stream, tensors, sizes, scratch);
  tcf_leave_context();
  return status;
}

/* With scratch from the arena of the provider.  It may be given back right after the launches: the
 * arena hands it out again in the order of the stream. */
static OrtStatus *launch_with_scratch(const Node *node, OrtKernelContext *context,
                                      const TcfOutputs *outputs, CUstream stream, char **tensors,
                                      int64_t *sizes, int64_t bytes) {
  const OrtMemoryInfo *memory; /* lent */
  OrtAllocator *allocator;
  void *scratch = NULL;
  TCF_TRY(ORT(GetTensorMemoryInfo)(outputs->first, &memory));
  TCF_TRY(ORT(KernelContext_GetAllocator)(context, memory, &allocator));
  OrtStatus *status = NULL;
  if (tcf_runtime_minor >= FIRST_WITH_SCRATCH) {
    status = ORT(KernelContext_GetScratchBuffer)(context, memory, (size_t)bytes, &scratch);
  } else {
    scratch = allocator->Alloc(allocator, (size_t)bytes);
  }
  if (!status)
    status = scratch ? launch_in_context(node, stream, tensors, sizes, scratch)
                     : tcf_refuse(node->region, "there is no memory for scratch");
  if (scratch) allocator->Free(allocator, scratch);
  ORT(ReleaseAllocator)(allocator);
  return status;
}

static OrtStatus *compute(void *kernel, OrtKernelContext *context) {
  const Node *node = kernel;
  const TcfRegion *region = node->region;
  char *tensors[region->n_inputs + region->n_outputs];
  int64_t sizes[region->n_sizes + 1];
  TcfOutputs outputs;
  void *stream = NULL;
  if (__atomic_load_n(node->fault, __ATOMIC_RELAXED)) {
    __atomic_store_n(node->fault, 0, __ATOMIC_RELAXED);
    return tcf_refuse(region,
                      "an index was out of range in an earlier run, whose results are wrong");
  }
  TCF_TRY(tcf_open_call(region, NULL, context, tensors, sizes, &outputs));
  if (outputs.elements == 0) return NULL;
  TCF_TRY(ORT(KernelContext_GetGPUComputeStream)(context, &stream));
  int64_t bytes = region->cuda->scratch(sizes);
  return bytes > 0 ? launch_with_scratch(node, context, &outputs, stream, tensors, sizes, bytes)
                   : launch_in_context(node, stream, tensors, sizes, NULL);
}

TCF_HIDDEN const TcfGpu tcf_cuda_gpu = {serves, create, compute, destroy};
