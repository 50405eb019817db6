/* Streams, events and graphs.  A stream does its work at once, or keeps it while it captures. */
#include <stdlib.h>

#include "fake.h"

struct Graph {
  Work *works;
  int count, room, references; /* an executable graph shares its graph's works */
};

struct Stream {
  CUgraph captures; /* NULL: it does not capture */
  int invalid;      /* something was called that a capture forbids */
};

struct Event {
  double seconds;
};

static CUstream capturing; /* the one stream that does */

#define LEGACY ((CUstream)1)
#define PER_THREAD ((CUstream)2)

static int is_made(CUstream stream) { return stream && stream != LEGACY && stream != PER_THREAD; }

int fake_captures(CUstream stream) { return is_made(stream) && stream->captures; }

CUresult fake_submit(CUstream stream, Work work) {
  if (!fake_captures(stream)) {
    work.run(work.data);
    free(work.data);
    return CUDA_SUCCESS;
  }
  CUgraph graph = stream->captures;
  if (graph->count == graph->room) {
    graph->room = graph->room ? 2 * graph->room : 16;
    graph->works = realloc(graph->works, (size_t)graph->room * sizeof *graph->works);
  }
  graph->works[graph->count++] = work;
  return CUDA_SUCCESS;
}

CUresult fake_refuse_capture(const char *function) {
  (void)function;
  if (!capturing) return CUDA_SUCCESS;
  capturing->invalid = 1;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* ---- streams */

API CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  ENTER("%u", flags);
  *stream = calloc(1, sizeof **stream);
  fake_count(1);
  return CUDA_SUCCESS;
}

API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  (void)priority;
  return cuStreamCreate(stream, flags);
}

API CUresult cuStreamDestroy_v2(CUstream stream) {
  ENTER("%p", (void *)stream);
  free(stream);
  fake_count(-1);
  return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream stream) {
  ENTER("%p", (void *)stream);
  return fake_refuse_capture(__func__);
}

API CUresult cuStreamQuery(CUstream stream) {
  ENTER("%p", (void *)stream);
  return fake_refuse_capture(__func__);
}

API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  ENTER("%p %p %u", (void *)stream, (void *)event, flags);
  return CUDA_SUCCESS;
}

/* ---- events */

API CUresult cuEventCreate(CUevent *event, unsigned flags) {
  ENTER("%u", flags);
  *event = calloc(1, sizeof **event);
  fake_count(1);
  return CUDA_SUCCESS;
}

API CUresult cuEventDestroy_v2(CUevent event) {
  ENTER("%p", (void *)event);
  free(event);
  fake_count(-1);
  return CUDA_SUCCESS;
}

API CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER("%p %p", (void *)event, (void *)stream);
  event->seconds = fake_seconds();
  return CUDA_SUCCESS;
}

API CUresult cuEventSynchronize(CUevent event) {
  ENTER("%p", (void *)event);
  return fake_refuse_capture(__func__);
}

API CUresult cuEventQuery(CUevent event) {
  ENTER("%p", (void *)event);
  return fake_refuse_capture(__func__);
}

API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end) {
  ENTER("%p %p", (void *)begin, (void *)end);
  *milliseconds = (float)((end->seconds - begin->seconds) * 1e3);
  return CUDA_SUCCESS;
}

API CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, begin, end);
}

/* ---- graphs */

static void drop(CUgraph graph) {
  if (--graph->references) return;
  for (int k = 0; k < graph->count; k++) free(graph->works[k].data);
  free(graph->works);
  free(graph);
}

API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  ENTER("%p %d", (void *)stream, mode);
  if (!is_made(stream) || capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream->captures = calloc(1, sizeof *stream->captures);
  stream->captures->references = 1;
  stream->invalid = 0;
  capturing = stream;
  fake_count(1);
  return CUDA_SUCCESS;
}

API CUresult cuStreamIsCapturing(CUstream stream, int *status) {
  ENTER("%p", (void *)stream);
  *status = fake_captures(stream);
  return CUDA_SUCCESS;
}

API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  ENTER("%p", (void *)stream);
  if (!fake_captures(stream)) return CUDA_ERROR_INVALID_VALUE;
  *graph = stream->captures;
  stream->captures = NULL;
  capturing = NULL;
  if (!stream->invalid) return CUDA_SUCCESS;
  drop(*graph);
  fake_count(-1);
  *graph = NULL;
  return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

API CUresult cuGraphInstantiateWithFlags(CUgraph *executable, CUgraph graph,
                                         unsigned long long flags) {
  ENTER("%p %llu", (void *)graph, flags);
  graph->references++;
  *executable = graph;
  fake_count(1);
  return CUDA_SUCCESS;
}

API CUresult cuGraphLaunch(CUgraph executable, CUstream stream) {
  ENTER("%p %p", (void *)executable, (void *)stream);
  for (int k = 0; k < executable->count; k++)
    executable->works[k].run(executable->works[k].data);
  return CUDA_SUCCESS;
}

API CUresult cuGraphExecDestroy(CUgraph executable) {
  ENTER("%p", (void *)executable);
  drop(executable);
  fake_count(-1);
  return CUDA_SUCCESS;
}

API CUresult cuGraphDestroy(CUgraph graph) {
  ENTER("%p", (void *)graph);
  drop(graph);
  fake_count(-1);
  return CUDA_SUCCESS;
}
