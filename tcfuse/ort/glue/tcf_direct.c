/* Calling kernels without ONNX Runtime.  The caller brings all memory and may bring threads. */
#include "tcf_chunks.h"
#include "tcf_complain.h"
#include "tcf_cpu.h"
#include "tcf_sizes.h"

#define TCF_EXPORT __attribute__((visibility("default")))

/* The best level that this machine has and the library was built for; negative: there is none. */
TCF_EXPORT int tcf_direct_level(void) { return tcf_served_level(tcf_cpu_level()); }

/* What a call with inputs of those dimensions needs; `plan` is filled with the dimensions of all
 * outputs, the bytes of shared scratch, those of local scratch for each part that runs at the same
 * time, and for each phase in how many parts it pays to cut it.  Returns 0 when the shapes do not
 * fit. */
TCF_EXPORT int tcf_direct_plan(int k, const int64_t *dims, int64_t *plan) {
  const TcfRegion *region = &tcf_regions[k];
  int64_t sizes[region->n_sizes + 1];
  TcfWork work[region->n_phases];
  TcfScratch scratch;
  TcfComplaint complaint;
  if (!tcf_bind_sizes(region, dims, sizes, &complaint)) return 0;
  if (!tcf_output_dims(region, sizes, plan, &complaint)) return 0;
  plan += region->n_output_dims;
  region->plan(sizes, work, &scratch);
  plan[0] = scratch.shared_bytes;
  plan[1] = scratch.local_bytes;
  for (int p = 0; p < region->n_phases; p++) plan[2 + p] = tcf_count_chunks(work[p], 1);
  return 1;
}

/* Why `tcf_direct_plan` returned 0: a sentence of at most `bytes` with its NUL. */
TCF_EXPORT void tcf_direct_complaint(int k, const int64_t *dims, char *sentence, int64_t bytes) {
  const TcfRegion *region = &tcf_regions[k];
  int64_t sizes[region->n_sizes + 1], output_dims[region->n_output_dims + 1], at = 0;
  TcfComplaint complaint = {0};
  TcfText text = {0};
  if (!tcf_bind_sizes(region, dims, sizes, &complaint) ||
      !tcf_output_dims(region, sizes, output_dims, &complaint))
    tcf_put_complaint(&text, &complaint);
  for (; text.text[at] && at + 1 < bytes; at++) sentence[at] = text.text[at];
  sentence[at] = 0;
}

/* Run part `part` of `parts` of the phases [first, last).  Several phases at once need to be whole
 * (`parts` is 1): each reads what all of the one before wrote.  Scratch is in whole cache lines;
 * NULL where 16 KiB serve, which only one part may ask of `shared`.  Returns whether an index was
 * out of range. */
TCF_EXPORT int tcf_direct_run(int k, int level, const int64_t *dims, char *const *tensors,
                              char *shared, char *local, int first, int last, int64_t part,
                              int64_t parts) {
  const TcfRegion *region = &tcf_regions[k];
  int64_t sizes[region->n_sizes + 1];
  TcfWork work[region->n_phases];
  TcfScratch scratch;
  TcfComplaint complaint;
  _Alignas(CACHE_LINE) char own_shared[STACK_SCRATCH], own_local[STACK_SCRATCH];
  int32_t fault = 0;
  if (!tcf_bind_sizes(region, dims, sizes, &complaint)) return 1;
  region->plan(sizes, work, &scratch);
  if (!shared) shared = own_shared;
  if (!local) local = own_local;
  for (int p = first; p < last && !fault; p++) {
    int64_t begin = tcf_chunk_begin(work[p].extent, part, parts);
    int64_t end = tcf_chunk_begin(work[p].extent, part + 1, parts);
    if (begin < end)
      region->loops[p][level](tensors, sizes, shared, local, begin, end, &fault);
  }
  return fault != 0;
}
