/* How a parallel loop is cut into chunks, and the scratch that needs no allocation. */
#ifndef TCF_CHUNKS_H
#define TCF_CHUNKS_H

#include "tcf_region.h"

enum {
  MOST_CHUNKS = 64,
  STACK_SCRATCH = 16384, /* bytes */
  CACHE_LINE = 64,
};

/* Picoseconds.  Threads that wait for work on their cores take it in one or two microseconds, and
 * ones that sleep have to be woken, which takes the caller ten. */
#define LEAST_CHUNK 5e6
#define LEAST_LOOP 20e6
#define LEAST_LOOP_ASLEEP 64e6

/* How many pieces a thread pool gets: none but whole loops of which less is not worth a thread. */
static inline int64_t tcf_count_chunks(TcfWork work, int asleep) {
  double whole = (double)work.extent * (double)tcf_max(work.cost, 1);
  if (whole < (asleep ? LEAST_LOOP_ASLEEP : LEAST_LOOP)) return 1;
  int64_t most = tcf_min(work.extent, MOST_CHUNKS);
  return whole < LEAST_CHUNK * MOST_CHUNKS ? tcf_min((int64_t)(whole / LEAST_CHUNK), most) : most;
}

/* Where chunk `k` of `chunks` begins; the last one ends where chunk `chunks` would begin. */
static inline int64_t tcf_chunk_begin(int64_t extent, int64_t k, int64_t chunks) {
  return extent / chunks * k + extent % chunks * k / chunks;
}

static inline int64_t tcf_round_up(int64_t bytes) {
  return (bytes + CACHE_LINE - 1) & -(int64_t)CACHE_LINE;
}

#endif
