/* RegisterCustomOps: which operators a session gets, for which provider and instruction set.
 *
 * An operator that is not registered is no error: the model carries a function of the same name,
 * which ONNX Runtime then runs.  So whatever cannot be served is left out here.  A model in a
 * blocked layout carries none, and is refused where ONNX Runtime has another block. */
#include "tcf_cpu.h"
#include "tcf_region.h"
#include "tcf_text.h"

/* Before 1.17 a failing operator cannot tell ONNX Runtime so: its status is dropped. */
enum { OLDEST_MINOR = 17, NEWEST_OPERATOR_VERSION = 18 };

OrtApi tcf_api;
uint32_t tcf_runtime_minor;
OrtMemoryInfo *tcf_cpu_memory;

static const char *const gpu_providers[TCF_N_GPU_PROVIDERS] = {"CUDAExecutionProvider",
                                                               "CudaPluginExecutionProvider"};
/* Shared by all sessions; per level of the CPU (the first has none), without and with GPUs. */
static OrtCustomOpDomain *whole_domains[1 + TCF_N_LEVELS][2];
static char registering;

/* The minor of "1.MINOR.PATCH"; a later major has at least the functions of the last minor. */
static uint32_t runtime_minor(const char *version) {
  uint32_t major = 0, minor = 0;
  while (*version >= '0' && *version <= '9') major = major * 10 + (uint32_t)(*version++ - '0');
  if (*version == '.') version++;
  while (*version >= '0' && *version <= '9') minor = minor * 10 + (uint32_t)(*version++ - '0');
  return major > 1 ? NEWEST_OPERATOR_VERSION : minor;
}

static const TcfRegion *region_of(const OrtCustomOp *op) { return ((const TcfOp *)op)->region; }

static const char *op_name(const OrtCustomOp *op) { return region_of(op)->name; }
static const char *op_provider(const OrtCustomOp *op) { return ((const TcfOp *)op)->provider; }
static size_t op_inputs(const OrtCustomOp *op) { return (size_t)region_of(op)->n_inputs; }
static size_t op_outputs(const OrtCustomOp *op) { return (size_t)region_of(op)->n_outputs; }
static int op_zero(const OrtCustomOp *op, size_t k) { return (void)op, (void)k, 0; }
static int op_one(const OrtCustomOp *op) { return (void)op, 1; }

static int op_input_type(const OrtCustomOp *op, size_t k) {
  return region_of(op)->ports[k].element_type;
}

static int op_output_type(const OrtCustomOp *op, size_t k) {
  return region_of(op)->ports[region_of(op)->n_inputs + (int)k].element_type;
}

static void fill_ops(void) {
  OrtCustomOp callbacks = {
      .version = tcf_runtime_minor < NEWEST_OPERATOR_VERSION ? tcf_runtime_minor
                                                             : NEWEST_OPERATOR_VERSION,
      .GetName = op_name,
      .GetExecutionProviderType = op_provider,
      .GetInputType = op_input_type,
      .GetInputTypeCount = op_inputs,
      .GetOutputType = op_output_type,
      .GetOutputTypeCount = op_outputs,
      .KernelDestroy = tcf_destroy,
      .GetInputCharacteristic = op_zero, /* required */
      .GetOutputCharacteristic = op_zero,
      .GetInputMemoryType = op_zero, /* the provider's own */
      .GetVariadicInputMinArity = op_one,
      .GetVariadicInputHomogeneity = op_one,
      .GetVariadicOutputMinArity = op_one,
      .GetVariadicOutputHomogeneity = op_one,
      .CreateKernelV2 = tcf_create,
      .KernelComputeV2 = tcf_compute,
      .InferOutputShapeFn = tcf_infer,
  };
  for (int level = 0; level < TCF_N_LEVELS; level++)
    for (int k = 0; k < tcf_n_regions; k++)
      tcf_ops[level * tcf_n_regions + k] = (TcfOp){callbacks, &tcf_regions[k], NULL, level};
  if (!tcf_gpu) return;
  callbacks.CreateKernelV2 = tcf_gpu->create;
  callbacks.KernelComputeV2 = tcf_gpu->compute;
  callbacks.KernelDestroy = tcf_gpu->destroy;
  for (int p = 0; p < TCF_N_GPU_PROVIDERS; p++)
    for (int k = 0; k < tcf_n_regions; k++)
      tcf_gpu_ops[p * tcf_n_regions + k] =
          (TcfOp){callbacks, &tcf_regions[k], gpu_providers[p], 0};
}

/* Take note of the runtime, the first time.  Another runtime in the same process is not served:
 * running kernels use `tcf_api`. */
static OrtStatus *meet_runtime(const OrtApiBase *base, int *served) {
  uint32_t minor = runtime_minor(base->GetVersionString());
  *served = 0;
  if (minor < OLDEST_MINOR) return NULL;
  OrtApi api = base->GetApi(minor < NEWEST_OPERATOR_VERSION ? minor : NEWEST_OPERATOR_VERSION);
  if (!api || (tcf_cpu_memory && api != tcf_api)) return NULL;
  if (!tcf_cpu_memory) {
    tcf_api = api;
    tcf_runtime_minor = minor;
    TCF_TRY(ORT(CreateMemoryInfo)("Cpu", ORT_ALLOCATOR_ARENA, 0, ORT_MEMORY_DEFAULT,
                                  &tcf_cpu_memory));
    fill_ops();
  }
  *served = 1;
  return NULL;
}

/* The session's entry for `key`, or "" when it has none. */
static OrtStatus *session_entry(const OrtSessionOptions *options, const char *key, char *value,
                                size_t bytes) {
  int present = 0;
  value[0] = 0;
  TCF_TRY(ORT(HasSessionConfigEntry)(options, key, &present));
  return present ? ORT(GetSessionConfigEntry)(options, key, value, &bytes) : NULL;
}

/* The best level that this machine has, the library was built for, and `wanted` ("v2" or "v3")
 * allows. */
static int choose_level(const char *wanted) {
  int level = tcf_cpu_level();
  if (wanted[0] == 'v' && wanted[1] >= '2' && wanted[1] <= '4' && wanted[1] - '2' < level)
    level = wanted[1] - '2';
  return tcf_served_level(level);
}

/* Whether a list of names separated by commas has this one, or "*" for all. */
static int listed(const char *list, const char *name) {
  while (*list) {
    const char *n = name;
    while (*list == ' ' || *list == ',') list++;
    if (list[0] == '*') return 1;
    while (*n && *list == *n) list++, n++;
    if (!*n && list != name && (*list == 0 || *list == ',' || *list == ' ')) return 1;
    while (*list && *list != ',') list++;
  }
  return 0;
}

/* Whether a GPU of this machine can run the region. */
static int runs_on_gpus(const TcfRegion *region) {
  return tcf_gpu && region->cuda && tcf_gpu->serves(region);
}

/* Whether this machine has a GPU for this library. */
static int has_gpus(void) {
  for (int k = 0; k < tcf_n_regions; k++)
    if (runs_on_gpus(&tcf_regions[k])) return 1;
  return 0;
}

/* Add what serves region `k`: for GPUs under each provider's name, for the CPU at `level`.  Where
 * there is a GPU, a region that it cannot run is left to ONNX Runtime, which has its operators on
 * the GPU: a kernel for the CPU would have tensors copied to and fro. */
static OrtStatus *add_region(OrtCustomOpDomain *domain, int k, int level, int gpus) {
  const TcfRegion *region = &tcf_regions[k];
  if (gpus ? !runs_on_gpus(region) : region->standby) return NULL;
  for (int p = 0; gpus && p < TCF_N_GPU_PROVIDERS; p++)
    TCF_TRY(ORT(CustomOpDomain_Add)(domain, &tcf_gpu_ops[p * tcf_n_regions + k].abi));
  if (level < 0 || !region->loops) return NULL;
  return ORT(CustomOpDomain_Add)(domain, &tcf_ops[level * tcf_n_regions + k].abi);
}

static OrtStatus *make_domain(int level, int gpus, const char *disabled,
                              OrtCustomOpDomain **domain) {
  TCF_TRY(ORT(CreateCustomOpDomain)(tcf_domain, domain));
  for (int k = 0; k < tcf_n_regions; k++)
    if (!listed(disabled, tcf_regions[k].name)) TCF_TRY(add_region(*domain, k, level, gpus));
  return NULL;
}

/* The weights and kernels of a model in a blocked layout are for one block: elsewhere the model
 * would compute something else. */
static OrtStatus *check_block(void) {
  int block = tcf_cpu_block();
  if (!tcf_block || tcf_block == block) return NULL;
  TcfText text = {0};
  tcf_put(&text, "tcfuse: this model is for processors on which ONNX Runtime keeps channels in "
                 "blocks of ");
  tcf_put_number(&text, tcf_block);
  tcf_put(&text, ", and here it has ");
  if (block) tcf_put(&text, "blocks of "), tcf_put_number(&text, block);
  else tcf_put(&text, "others");
  tcf_put(&text, "; use the model beside it that ends in .portable.onnx");
  return ORT(CreateStatus)(ORT_FAIL, text.text);
}

static OrtStatus *register_ops(OrtSessionOptions *options, const OrtApiBase *base) {
  int served;
  TCF_TRY(meet_runtime(base, &served));
  if (!served) return NULL;
  TCF_TRY(check_block());

  char wanted[16], cuda[16], disabled[4096];
  TCF_TRY(session_entry(options, "tcfuse.level", wanted, sizeof wanted));
  TCF_TRY(session_entry(options, "tcfuse.cuda", cuda, sizeof cuda));
  TCF_TRY(session_entry(options, "tcfuse.disable", disabled, sizeof disabled));
  int level = choose_level(wanted), gpus = cuda[0] != '0' && has_gpus();
  if (level < 0 && !gpus) return NULL;

  /* Sessions may outlive this call in any order, so a domain is never released: one serves all
   * sessions that disable nothing; the others, rare, have one each. */
  OrtCustomOpDomain *own = NULL;
  OrtCustomOpDomain **domain = disabled[0] ? &own : &whole_domains[1 + level][gpus];
  if (!*domain) TCF_TRY(make_domain(level, gpus, disabled, domain));
  return ORT(AddCustomOpDomain)(options, *domain);
}

__attribute__((visibility("default"))) OrtStatus *RegisterCustomOps(OrtSessionOptions *options,
                                                                     const OrtApiBase *base) {
  while (__atomic_test_and_set(&registering, __ATOMIC_ACQUIRE)) {
    /* Another thread registers: microseconds, or the first search for a GPU. */
  }
  OrtStatus *status = register_ops(options, base);
  __atomic_clear(&registering, __ATOMIC_RELEASE);
  return status;
}
