/* The loops of a region, cut into chunks for the session's thread pool, and their scratch. */
#include "tcf_run.h"

#include "tcf_chunks.h"
#include "tcf_refuse.h"

/* Scratch of chunks that run at the same time together takes at most this, unless one alone needs
 * more. */
#define MOST_LOCAL_BYTES ((int64_t)64 << 20)

/* A parallel loop in flight. */
typedef struct {
  TcfLoop *loop;
  char *const *tensors;
  const int64_t *sizes;
  char *shared, *local;
  int64_t extent, chunks, local_bytes;
  uint64_t free_locals; /* bit k: the k-th part of `local` is free */
  int32_t *fault;
} Job;

/* Claim a part of the scratch.  There are as many parts as chunks, or so much scratch that waiting
 * for a running chunk costs less than more memory. */
static int claim_local(Job *job) {
  uint64_t seen = __atomic_load_n(&job->free_locals, __ATOMIC_RELAXED);
  for (;;) {
    if (seen == 0) {
      seen = __atomic_load_n(&job->free_locals, __ATOMIC_RELAXED);
    } else if (__atomic_compare_exchange_n(&job->free_locals, &seen, seen & (seen - 1), 0,
                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      return __builtin_ctzll(seen);
    }
  }
}

static void run_range(const Job *job, char *local, int64_t begin, int64_t end) {
  job->loop(job->tensors, job->sizes, job->shared, local, begin, end, job->fault);
}

/* Called by the thread pool. */
static void run_chunk(void *data, size_t index) {
  Job *job = data;
  int64_t k = (int64_t)index;
  int64_t begin = tcf_chunk_begin(job->extent, k, job->chunks);
  int64_t end = tcf_chunk_begin(job->extent, k + 1, job->chunks);
  if (job->local) {
    int part = claim_local(job);
    run_range(job, job->local + part * job->local_bytes, begin, end);
    __atomic_fetch_or(&job->free_locals, (uint64_t)1 << part, __ATOMIC_RELEASE);
  } else {
    _Alignas(CACHE_LINE) char local[STACK_SCRATCH];
    run_range(job, local, begin, end);
  }
}

/* What one call needs besides its tensors. */
typedef struct {
  TcfWork *work;         /* per phase */
  int asleep;            /* what the threads are before a loop */
  int64_t shared_bytes;  /* 0: the stack serves */
  int64_t local_bytes;   /* of one part; 0: the stack serves */
  int64_t parts;
} Plan;

/* Sizes of scratch that the stack cannot serve, in whole cache lines. */
static void plan_scratch(const TcfRegion *region, const TcfScratch *scratch, Plan *plan) {
  int64_t shared = scratch->shared_bytes, local = scratch->local_bytes;
  plan->shared_bytes = shared > STACK_SCRATCH ? tcf_round_up(shared) : 0;
  plan->local_bytes = local > STACK_SCRATCH ? tcf_round_up(local) : 0;
  plan->parts = 1;
  if (plan->local_bytes == 0) return;
  for (int p = 0; p < region->n_phases; p++)
    plan->parts = tcf_max(plan->parts, tcf_count_chunks(plan->work[p], plan->asleep));
  plan->parts = tcf_max(1, tcf_min(plan->parts, MOST_LOCAL_BYTES / plan->local_bytes));
}

/* `heap` has the scratch that the plan asks for. */
static OrtStatus *run_phases(const TcfOp *op, OrtKernelContext *context, char *const *tensors,
                             const int64_t *sizes, const Plan *plan, char *heap) {
  const TcfRegion *region = op->region;
  _Alignas(CACHE_LINE) char shared[STACK_SCRATCH];
  int32_t fault = 0;
  Job job = {.tensors = tensors, .sizes = sizes, .fault = &fault};
  job.shared = plan->shared_bytes ? heap : shared;
  job.local = plan->local_bytes ? heap + plan->shared_bytes : NULL;
  job.local_bytes = plan->local_bytes;
  job.free_locals = ~(uint64_t)0 >> (MOST_CHUNKS - plan->parts);
  for (int p = 0; p < region->n_phases && !fault; p++) {
    if (plan->work[p].extent <= 0) continue;
    job.loop = region->loops[p][op->level];
    job.extent = plan->work[p].extent;
    job.chunks = tcf_count_chunks(plan->work[p], plan->asleep);
    if (job.chunks == 1) {
      run_chunk(&job, 0);
    } else {
      TCF_TRY(ORT(KernelContext_ParallelFor)(context, run_chunk, (size_t)job.chunks, 0, &job));
    }
  }
  return fault ? tcf_refuse(region, "an index is out of range") : NULL;
}

OrtStatus *tcf_run(const TcfOp *op, int asleep, OrtKernelContext *context,
                   char *const *tensors, const int64_t *sizes) {
  TcfWork work[op->region->n_phases];
  TcfScratch scratch;
  Plan plan = {.work = work, .asleep = asleep};
  op->region->plan(sizes, work, &scratch);
  plan_scratch(op->region, &scratch, &plan);
  int64_t bytes = plan.shared_bytes + plan.local_bytes * plan.parts;
  if (bytes == 0) return run_phases(op, context, tensors, sizes, &plan, NULL);

  OrtAllocator *allocator;
  TCF_TRY(ORT(KernelContext_GetAllocator)(context, tcf_cpu_memory, &allocator));
  char *memory = allocator->Alloc(allocator, (size_t)(bytes + CACHE_LINE));
  char *heap = (char *)tcf_round_up((int64_t)memory);
  OrtStatus *status = memory ? run_phases(op, context, tensors, sizes, &plan, heap)
                             : tcf_refuse(op->region, "there is no memory for scratch");
  if (memory) allocator->Free(allocator, memory);
  ORT(ReleaseAllocator)(allocator);
  return status;
}
