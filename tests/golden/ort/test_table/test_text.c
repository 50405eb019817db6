#include "tcf_region.h"

/* sum */
static const TcfPort ports_0[] = {{1, 3}, {1, 1}, {1, 2}, {1, 0}};
static const int32_t origins_0[] = {0, 1, -1};
static const int32_t dim_sizes_0[] = {2, 0};
static const uint64_t dim_needs_0[] = {0x3u, 0x1u};
static void derive_0(int64_t *tcf_sizes) {
  const int64_t n0 = tcf_sizes[0];
  const int64_t n1 = tcf_sizes[1];
  tcf_sizes[2] = 3 * n0 * n1;
}
extern TCF_HIDDEN TcfLoop sum_0_v2;
extern TCF_HIDDEN TcfLoop sum_0_v3;
extern TCF_HIDDEN TcfLoop sum_0_v4;
extern TCF_HIDDEN TcfLoop sum_1_v2;
extern TCF_HIDDEN TcfLoop sum_1_v3;
extern TCF_HIDDEN TcfLoop sum_1_v4;
static TcfLoop *const loops_0[][TCF_N_LEVELS] = {{sum_0_v2, sum_0_v3, sum_0_v4}, {sum_1_v2, sum_1_v3, sum_1_v4}};
static void plan_0(const int64_t *tcf_sizes, TcfWork *tcf_work,
                   TcfScratch *tcf_scratch) {
  const int64_t n2 = tcf_sizes[2];
  const int64_t n0 = tcf_sizes[0];
  const int64_t n1 = tcf_sizes[1];
  tcf_work[0] = (TcfWork){n2, n0};
  tcf_work[1] = (TcfWork){n0, n2 / tcf_nonzero(n1)};
  *tcf_scratch = (TcfScratch){4 * n2, 64};
}
static int agree_0(const int64_t *tcf_dims, const int64_t *tcf_sizes,
                   TcfComplaint *tcf_complaint) {
  const int64_t n1 = tcf_sizes[1];
  const int64_t n0 = tcf_sizes[0];
  TCF_AGREE(2, 3, "input 0, dimension 2", NULL)
  TCF_AGREE(3, n0 + 1, "input 1, dimension 0", "dimension 0 of input 0 + 1")
  TCF_REQUIRE(n1 != 7, "no \"sevens\"")
  return 1;
}
static void shape_0(const int64_t *tcf_sizes, int64_t *tcf_dims) {
  const int64_t n2 = tcf_sizes[2];
  const int64_t n0 = tcf_sizes[0];
  tcf_dims[0] = n2;
  tcf_dims[1] = n0;
}

const TcfRegion tcf_regions[] = {
  {.name = "sum", .n_inputs = 2, .n_outputs = 2, .n_sizes = 3, .n_input_dims = 4, .n_output_dims = 2, .derive = derive_0, .ports = ports_0, .origins = origins_0, .agree = agree_0, .shape = shape_0, .dim_sizes = dim_sizes_0, .dim_needs = dim_needs_0, .n_phases = 2, .plan = plan_0, .loops = loops_0},
};

const int tcf_n_regions = 1;
const char tcf_domain[] = "tcfuse";
const int tcf_block = 0;
TcfOp tcf_ops[TCF_N_LEVELS * 1];
TcfOp tcf_gpu_ops[TCF_N_GPU_PROVIDERS * 1];
const TcfGpu *const tcf_gpu = NULL;
