/* How a parallel loop is cut into chunks, and the scratch that needs no allocation. */
#ifndef TCF_CHUNKS_H
#define TCF_CHUNKS_H

#include "tcf_region.h"

enum {
  WORK_PER_CHUNK = 40000, /* scalar operations: about 5 us, ten times a dispatch */
  MOST_CHUNKS = 64,
  STACK_SCRATCH = 16384, /* bytes */
  CACHE_LINE = 64,
};

/* How many pieces a thread pool gets: as many as have enough work each. */
static inline int64_t tcf_count_chunks(TcfWork work) {
  double whole = (double)work.extent * (double)tcf_max(work.cost, 1) / WORK_PER_CHUNK;
  int64_t most = tcf_min(work.extent, MOST_CHUNKS);
  return whole < 2 ? 1 : tcf_min(whole < MOST_CHUNKS ? (int64_t)whole : MOST_CHUNKS, most);
}

/* Where chunk `k` of `chunks` begins; the last one ends where chunk `chunks` would begin. */
static inline int64_t tcf_chunk_begin(int64_t extent, int64_t k, int64_t chunks) {
  return extent / chunks * k + extent % chunks * k / chunks;
}

static inline int64_t tcf_round_up(int64_t bytes) {
  return (bytes + CACHE_LINE - 1) & -(int64_t)CACHE_LINE;
}

#endif
