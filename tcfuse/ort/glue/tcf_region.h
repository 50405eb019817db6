/* What the generated table says about each fused region, and what the shell adds to it. */
#ifndef TCF_REGION_H
#define TCF_REGION_H

#include "tcf_ort_abi.h"

#define TCF_HIDDEN __attribute__((visibility("hidden")))

/* Instruction sets a kernel may be compiled for, ascending.  Machines other than x86-64 have the
 * first one only. */
enum { TCF_N_LEVELS = 3 };

/* One parallel loop of a kernel: iterations [begin, end). */
typedef void TcfLoop(char *const *tensors, const int64_t *sizes, char *shared, char *local,
                     int64_t begin, int64_t end, int32_t *fault);

typedef struct {
  int element_type; /* ONNXTensorElementDataType */
  int rank;
} TcfPort;

/* Why a call was refused: "<where> is <found>; the model says it equals <rule>, which is
 * <expected>", or `sentence` when that is set. */
typedef struct {
  const char *sentence;
  const char *where;
  const char *rule; /* NULL: a constant */
  int64_t found;
  int64_t expected;
} TcfComplaint;

typedef struct {
  int64_t extent; /* iterations */
  int64_t cost;   /* about how many picoseconds one takes */
} TcfWork;

typedef struct {
  int64_t shared_bytes; /* for the whole call */
  int64_t local_bytes;  /* for each chunk of iterations */
} TcfScratch;

/* How a region runs on a GPU (tcf_cuda.h). */
typedef struct TcfCuda TcfCuda;

/* Dimensions of all inputs (or outputs) stand one after the other in one array. */
typedef struct {
  const char *name;
  int n_inputs, n_outputs, n_sizes, n_phases;
  int n_input_dims, n_output_dims;
  const TcfPort *ports; /* inputs, then outputs */

  const int32_t *origins;        /* per size: the input dimension it is read from; -1: derived */
  void (*derive)(int64_t *sizes); /* fill in the derived sizes; NULL when there are none */
  int (*agree)(const int64_t *dims, const int64_t *sizes, TcfComplaint *complaint);
  void (*shape)(const int64_t *sizes, int64_t *output_dims);
  void (*plan)(const int64_t *sizes, TcfWork *phases, TcfScratch *scratch);
  TcfLoop *const (*loops)[TCF_N_LEVELS]; /* per phase; NULL where a level was not built; NULL
                                          * altogether when there is no kernel for the CPU */
  const TcfCuda *cuda;                   /* NULL: there is no kernel for GPUs */
  int standby; /* the CPU's kernel does not pay; it is there for sessions on the CPU of a machine
                * that has a GPU: an operator that is registered needs a kernel there too */

  /* For shape inference: the size an output dimension is (or -1), and the sizes it depends on
   * as a bit set; bit 63 says that it depends on one that has no bit. */
  const int32_t *dim_sizes;
  const uint64_t *dim_needs;
} TcfRegion;

/* An operator as ONNX Runtime sees it, and what we find from it. */
typedef struct {
  OrtCustomOp abi; /* first: ONNX Runtime's pointer to it is a pointer to this */
  const TcfRegion *region;
  const char *provider; /* execution provider; NULL: the CPU's */
  int level;            /* of the CPU's kernel */
} TcfOp;

/* Execution providers for NVIDIA GPUs: the one of ONNX Runtime, and its plugin's early name. */
enum { TCF_N_GPU_PROVIDERS = 2 };

/* What runs the operators of GPUs. */
typedef struct {
  int (*serves)(const TcfRegion *region); /* whether some GPU of this machine can run it */
  OrtStatus *(*create)(const OrtCustomOp *op, OrtApi api, const OrtKernelInfo *info,
                       void **kernel);
  OrtStatus *(*compute)(void *kernel, OrtKernelContext *context);
  void (*destroy)(void *kernel);
} TcfGpu;

/* The generated table. */
extern TCF_HIDDEN const TcfRegion tcf_regions[];
extern TCF_HIDDEN const int tcf_n_regions;
extern TCF_HIDDEN const char tcf_domain[]; /* of the operators */
extern TCF_HIDDEN const int tcf_block; /* channels in a block of the layout that kernels work on;
                                        * 0: they work on plain tensors */
extern TCF_HIDDEN TcfOp tcf_ops[]; /* TCF_N_LEVELS times tcf_n_regions, ordered by level */
extern TCF_HIDDEN const TcfGpu *const tcf_gpu; /* NULL: the library has nothing for GPUs */
extern TCF_HIDDEN TcfOp tcf_gpu_ops[]; /* TCF_N_GPU_PROVIDERS times tcf_n_regions, as above */

/* The best level not above `level` that the library was built for; negative: there is none.  All
 * regions that run on the CPU were built for the same ones. */
static inline int tcf_served_level(int level) {
  int k = 0;
  while (k < tcf_n_regions && !tcf_regions[k].loops) k++;
  if (k == tcf_n_regions) return -1;
  while (level >= 0 && !tcf_regions[k].loops[0][level]) level--;
  return level;
}

/* Helpers for the expressions in the table. */
static inline int64_t tcf_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tcf_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* floor(a / b) for b > 0 */
static inline int64_t tcf_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* What every divisor is wrapped in. */
static inline int64_t tcf_nonzero(int64_t a) { return a ? a : 1; }

static inline int tcf_disagree(TcfComplaint *complaint, const char *where, int64_t found,
                               const char *rule, int64_t expected) {
  *complaint = (TcfComplaint){0, where, rule, found, expected};
  return 0;
}

/* The input dimension at `position` must have the value `expected`. */
#define TCF_AGREE(position, expected, where, rule)                                       \
  if (tcf_dims[position] != (int64_t)(expected))                                         \
    return tcf_disagree(tcf_complaint, where, tcf_dims[position], rule, (int64_t)(expected));

/* A condition over sizes must hold. */
#define TCF_REQUIRE(condition, text) TCF_REQUIRE_OF(tcf_complaint, condition, text)
#define TCF_REQUIRE_OF(complaint, condition, text) \
  if (!(condition)) {                              \
    (complaint)->sentence = (text);                \
    return 0;                                      \
  }

/* Callbacks of the shell. */
TCF_HIDDEN OrtStatus *tcf_create(const OrtCustomOp *op, OrtApi api, const OrtKernelInfo *info,
                                 void **kernel);
TCF_HIDDEN OrtStatus *tcf_compute(void *kernel, OrtKernelContext *context);
TCF_HIDDEN void tcf_destroy(void *kernel);
TCF_HIDDEN OrtStatus *tcf_infer(const OrtCustomOp *op, OrtShapeInferContext *context);

/* Scratch comes from this allocator of the session. */
extern TCF_HIDDEN OrtMemoryInfo *tcf_cpu_memory;

#endif
