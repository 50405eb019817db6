/* As much of ONNX Runtime as an operator of a library meets: registration, one node, its runs.
 *
 * Tensors are the caller's memory, so they lie wherever a test puts them; scratch comes from an
 * arena of its own, and what is not given back is counted. */
#include "tcf_ort_abi.h"

#define EXPORT __attribute__((visibility("default")))

enum { MOST_RANK = 8, MOST_OPS = 64, TEXT = 640, ARENA = 1 << 20, LAST_SLOT = 424 };

struct OrtStatus {
  int code;
  char message[TEXT];
};
struct OrtMemoryInfo {
  int device;
};
struct OrtValue { /* the caller's, as the next two are */
  int64_t rank, dims[MOST_RANK];
  void *data;
  OrtMemoryInfo memory;
};
struct OrtKernelContext {
  OrtValue *inputs, *outputs; /* outputs have `data`; their dimensions are filled in */
  void *stream;
  char *scratch; /* what the next request gets */
  int64_t scratch_bytes; /* asked for so far */
  int64_t asked_by_stream, live; /* requests tagged with the stream; not given back */
};
struct OrtKernelInfo {
  int device;
};
struct OrtCustomOpDomain {
  const OrtCustomOp *ops[MOST_OPS];
  int n_ops;
};
struct OrtSessionOptions {
  const char *key, *value; /* one entry */
  OrtCustomOpDomain *domain;
};

static int live; /* allocations of nodes and their kin */
static int runtime_minor = 32;
static int logs;
static char logged[TEXT];

static int same(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

static void copy(char *to, const char *from, size_t bytes) {
  size_t k = 0;
  for (; from[k] && k + 1 < bytes; k++) to[k] = from[k];
  to[k] = 0;
}

/* ---- memory: nodes from an arena, scratch from the call */

static void *node_alloc(OrtAllocator *self, size_t bytes) {
  static _Alignas(64) char arena[ARENA];
  static size_t used;
  size_t at = used;
  (void)self;
  used += (bytes + 63) & ~(size_t)63;
  live++;
  return used <= ARENA ? arena + at : NULL;
}
static void node_free(OrtAllocator *self, void *memory) { (void)self, (void)memory, live--; }
static OrtAllocator node_allocator = {1, node_alloc, node_free};

static OrtKernelContext *running; /* whose arena the next allocator is for */
static void *scratch_alloc(OrtAllocator *self, size_t bytes) {
  (void)self;
  running->scratch_bytes += (int64_t)bytes;
  running->live++;
  return running->scratch;
}
static void scratch_free(OrtAllocator *self, void *memory) {
  (void)self;
  if (memory == running->scratch) running->live--;
}
static OrtAllocator scratch_allocator = {1, scratch_alloc, scratch_free};
static OrtMemoryInfo device_memory;

/* ---- the interface */

static OrtStatus *create_status(int code, const char *message) {
  OrtStatus *status = node_alloc(NULL, sizeof *status);
  status->code = code;
  copy(status->message, message, TEXT);
  return status;
}
static void release_status(OrtStatus *status) { node_free(NULL, status); }
static OrtStatus *create_domain(const char *name, OrtCustomOpDomain **domain) {
  static OrtCustomOpDomain domains[256]; /* never released */
  static int used;
  (void)name;
  *domain = &domains[used++];
  return NULL;
}
static OrtStatus *domain_add(OrtCustomOpDomain *domain, const OrtCustomOp *op) {
  domain->ops[domain->n_ops++] = op;
  return NULL;
}
static OrtStatus *add_domain(OrtSessionOptions *options, OrtCustomOpDomain *domain) {
  options->domain = domain;
  return NULL;
}
static OrtStatus *has_entry(const OrtSessionOptions *options, const char *key, int *present) {
  *present = options->key && same(options->key, key);
  return NULL;
}
static OrtStatus *get_entry(const OrtSessionOptions *options, const char *key, char *value,
                            size_t *bytes) {
  (void)key;
  copy(value, options->value, *bytes);
  return NULL;
}
static OrtStatus *create_memory_info(const char *name, int allocator, int id, int memory,
                                     OrtMemoryInfo **info) {
  static OrtMemoryInfo cpu;
  (void)name, (void)allocator, (void)id, (void)memory;
  *info = &cpu;
  return NULL;
}
static OrtStatus *default_allocator(OrtAllocator **allocator) {
  *allocator = &node_allocator;
  return NULL;
}
static void release_allocator(OrtAllocator *allocator) { (void)allocator, live--; }
static OrtStatus *info_allocator(const OrtKernelInfo *info, int memory, OrtAllocator **allocator) {
  (void)memory;
  device_memory.device = info->device;
  *allocator = &scratch_allocator;
  live++;
  return NULL;
}
static OrtStatus *allocator_info(const OrtAllocator *allocator, const OrtMemoryInfo **memory) {
  (void)allocator;
  *memory = &device_memory;
  return NULL;
}
static OrtStatus *memory_id(const OrtMemoryInfo *memory, int *id) {
  *id = memory->device;
  return NULL;
}
static OrtStatus *get_logger(const OrtKernelInfo *info, const OrtLogger **logger) {
  *logger = (const OrtLogger *)info;
  return NULL;
}
static OrtStatus *log_message(const OrtLogger *logger, int severity, const char *message,
                              const char *file, int line, const char *function) {
  (void)logger, (void)severity, (void)file, (void)line, (void)function;
  copy(logged, message, TEXT);
  logs++;
  return NULL;
}
static OrtStatus *constant_input(const OrtKernelInfo *info, size_t k, int *constant,
                                 OrtValue **value) {
  (void)info, (void)k, (void)value;
  *constant = 0;
  return NULL;
}
static OrtStatus *get_input(const OrtKernelContext *context, size_t k, OrtValue **value) {
  *value = &context->inputs[k];
  return NULL;
}
static OrtStatus *get_output(OrtKernelContext *context, size_t k, const int64_t *dims, size_t rank,
                             OrtValue **value) {
  *value = &context->outputs[k];
  (*value)->rank = (int64_t)rank;
  for (size_t d = 0; d < rank; d++) (*value)->dims[d] = dims[d];
  return NULL;
}
static OrtStatus *tensor_data(OrtValue *value, void **data) {
  *data = value->data;
  return NULL;
}
static OrtStatus *lend_shape(const OrtValue *value, int *type, const int64_t **dims, size_t *rank) {
  *type = 1;
  *dims = value->dims;
  *rank = (size_t)value->rank;
  return NULL;
}
static OrtStatus *get_shape(const OrtValue *value, OrtTensorShape **shape) {
  *shape = (OrtTensorShape *)value;
  live++;
  return NULL;
}
static OrtStatus *shape_rank(const OrtTensorShape *shape, size_t *rank) {
  *rank = (size_t)((const OrtValue *)shape)->rank;
  return NULL;
}
static OrtStatus *shape_dims(const OrtTensorShape *shape, int64_t *dims, size_t rank) {
  for (size_t d = 0; d < rank; d++) dims[d] = ((const OrtValue *)shape)->dims[d];
  return NULL;
}
static void release_shape(OrtTensorShape *shape) { (void)shape, live--; }
static OrtStatus *tensor_memory(const OrtValue *value, const OrtMemoryInfo **memory) {
  *memory = &value->memory;
  return NULL;
}
static OrtStatus *context_allocator(const OrtKernelContext *context, const OrtMemoryInfo *memory,
                                    OrtAllocator **allocator) {
  (void)context, (void)memory;
  *allocator = &scratch_allocator;
  live++;
  return NULL;
}
static OrtStatus *scratch_buffer(const OrtKernelContext *context, const OrtMemoryInfo *memory,
                                 size_t bytes, void **scratch) {
  (void)context, (void)memory;
  running->asked_by_stream++;
  *scratch = scratch_alloc(NULL, bytes);
  return NULL;
}
static OrtStatus *compute_stream(const OrtKernelContext *context, void **stream) {
  *stream = context->stream;
  return NULL;
}

static OrtStatus *config_entries(const OrtKernelInfo *info, OrtKeyValuePairs **entries) {
  (void)info, *entries = NULL;
  return NULL;
}
static const char *key_value(const OrtKeyValuePairs *entries, const char *key) {
  (void)entries, (void)key;
  return NULL;
}
static void release_entries(OrtKeyValuePairs *entries) { (void)entries; }

static const void *const api[LAST_SLOT + 1] = {
    [CreateStatus_slot] = create_status,
    [ReleaseStatus_slot] = release_status,
    [CreateCustomOpDomain_slot] = create_domain,
    [CustomOpDomain_Add_slot] = domain_add,
    [AddCustomOpDomain_slot] = add_domain,
    [HasSessionConfigEntry_slot] = has_entry,
    [GetSessionConfigEntry_slot] = get_entry,
    [CreateMemoryInfo_slot] = create_memory_info,
    [GetAllocatorWithDefaultOptions_slot] = default_allocator,
    [ReleaseAllocator_slot] = release_allocator,
    [KernelInfoGetAllocator_slot] = info_allocator,
    [AllocatorGetInfo_slot] = allocator_info,
    [MemoryInfoGetId_slot] = memory_id,
    [KernelInfo_GetLogger_slot] = get_logger,
    [Logger_LogMessage_slot] = log_message,
    [KernelInfo_GetConfigEntries_slot] = config_entries,
    [GetKeyValue_slot] = key_value,
    [ReleaseKeyValuePairs_slot] = release_entries,
    [KernelInfoGetConstantInput_tensor_slot] = constant_input,
    [KernelContext_GetInput_slot] = get_input,
    [KernelContext_GetOutput_slot] = get_output,
    [GetTensorMutableData_slot] = tensor_data,
    [GetTensorElementTypeAndShapeDataReference_slot] = lend_shape,
    [GetTensorTypeAndShape_slot] = get_shape,
    [GetDimensionsCount_slot] = shape_rank,
    [GetDimensions_slot] = shape_dims,
    [ReleaseTensorTypeAndShapeInfo_slot] = release_shape,
    [GetTensorMemoryInfo_slot] = tensor_memory,
    [KernelContext_GetAllocator_slot] = context_allocator,
    [KernelContext_GetScratchBuffer_slot] = scratch_buffer,
    [KernelContext_GetGPUComputeStream_slot] = compute_stream,
};

static OrtApi get_api(uint32_t version) { return version <= (uint32_t)runtime_minor ? api : NULL; }
static const char *get_version(void) { return runtime_minor == 17 ? "1.17.3" : "1.32.0"; }
static const OrtApiBase base = {get_api, get_version};

/* ---- what tests call; a status becomes its code and message */

static int told(OrtStatus *status, char *message) {
  int code = status ? status->code : 0;
  copy(message, status ? status->message : "", TEXT);
  if (status) release_status(status);
  return code;
}

typedef OrtStatus *Register(OrtSessionOptions *, const OrtApiBase *);

EXPORT int fake_register(Register *entry, int minor, OrtSessionOptions *options, char *message) {
  runtime_minor = minor;
  return told(entry(options, &base), message);
}

EXPORT int fake_count(const OrtSessionOptions *options) {
  return options->domain ? options->domain->n_ops : 0;
}

/* Name (`what` 0) or execution provider (1; NULL is the CPU's) of an operator. */
EXPORT const char *fake_word(const OrtSessionOptions *options, int k, int what) {
  const OrtCustomOp *op = options->domain->ops[k];
  return what ? op->GetExecutionProviderType(op) : op->GetName(op);
}

EXPORT int fake_create(const OrtSessionOptions *options, int k, int device, void **kernel,
                       char *message) {
  const OrtCustomOp *op = options->domain->ops[k];
  OrtKernelInfo info = {device};
  return told(op->CreateKernelV2(op, api, &info, kernel), message);
}

EXPORT int fake_compute(const OrtSessionOptions *options, int k, void *kernel,
                        OrtKernelContext *context, char *message) {
  running = context;
  return told(options->domain->ops[k]->KernelComputeV2(kernel, context), message);
}

EXPORT void fake_destroy(const OrtSessionOptions *options, int k, void *kernel) {
  options->domain->ops[k]->KernelDestroy(kernel);
}

EXPORT int fake_live_objects(void) { return live; }
EXPORT int fake_logs(char *last) {
  copy(last, logged, TEXT);
  return logs;
}
