/* Device memory: host memory in a table, so that copies that leave it are found. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define ALIGNMENT 256 /* of what cuMemAlloc returns */
#define MOST_BYTES ((size_t)16 << 30)

typedef struct Allocation {
  char *memory;
  size_t bytes;
  int on_host;
  struct Allocation *next;
} Allocation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Allocation *allocations;

static CUresult allocate(void **address, size_t bytes, int on_host) {
  Allocation *made = malloc(sizeof *made);
  if (bytes == 0 || bytes > MOST_BYTES) {
    free(made);
    return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  }
  if (posix_memalign((void **)&made->memory, ALIGNMENT, bytes)) {
    free(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memset(made->memory, 0xff, bytes < (1 << 20) ? bytes : 1 << 20); /* NaN, if nobody writes */
  made->bytes = bytes;
  made->on_host = on_host;
  pthread_mutex_lock(&lock);
  made->next = allocations;
  allocations = made;
  pthread_mutex_unlock(&lock);
  fake_count(1);
  *address = made->memory;
  return CUDA_SUCCESS;
}

static CUresult release(const char *address, int on_host) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  for (Allocation **at = &allocations; *at; at = &(*at)->next) {
    Allocation *found = *at;
    if (found->memory != address || found->on_host != on_host) continue;
    *at = found->next;
    free(found->memory);
    free(found);
    fake_count(-1);
    result = CUDA_SUCCESS;
    break;
  }
  pthread_mutex_unlock(&lock);
  return address ? result : CUDA_SUCCESS;
}

/* Whether `bytes` from `address` on are device memory. */
static int is_device(CUdeviceptr address, size_t bytes) {
  int found = bytes == 0;
  const char *begin = (const char *)(uintptr_t)address;
  pthread_mutex_lock(&lock);
  for (Allocation *at = allocations; at && !found; at = at->next)
    found = begin >= at->memory && begin + bytes <= at->memory + at->bytes;
  pthread_mutex_unlock(&lock);
  return found;
}

API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  void *memory = NULL;
  ENTER("%zu", bytes);
  CUresult refused = fake_refuse_capture(__func__);
  if (refused) return refused;
  CUresult result = allocate(&memory, bytes, 0);
  *address = (CUdeviceptr)(uintptr_t)memory;
  return result;
}

API CUresult cuMemFree_v2(CUdeviceptr address) {
  ENTER("%#llx", (unsigned long long)address);
  CUresult refused = fake_refuse_capture(__func__);
  return refused ? refused : release((const char *)(uintptr_t)address, 0);
}

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  ENTER(".");
  *free_bytes = *total = MOST_BYTES;
  return CUDA_SUCCESS;
}

API CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  ENTER("%zu %u", bytes, flags);
  return allocate(address, bytes, 1);
}

API CUresult cuMemAllocHost_v2(void **address, size_t bytes) {
  ENTER("%zu", bytes);
  return allocate(address, bytes, 1);
}

API CUresult cuMemFreeHost(void *address) {
  ENTER("%p", address);
  return release(address, 1);
}

API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags) {
  ENTER("%p %u", host, flags);
  *address = (CUdeviceptr)(uintptr_t)host;
  return is_device(*address, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- copies */

typedef struct {
  void *to;
  const void *from;
  size_t bytes;
} Copy;

static void copy(void *data) {
  Copy *job = data;
  memmove(job->to, job->from, job->bytes);
}

static CUresult submit_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  Copy *job = malloc(sizeof *job);
  *job = (Copy){(void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes};
  return fake_submit(stream, (Work){copy, job});
}

static CUdeviceptr pointer(const void *host) { return (CUdeviceptr)(uintptr_t)host; }

API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                  CUstream stream) {
  ENTER("%#llx %zu %p", (unsigned long long)to, bytes, (void *)stream);
  if (!is_device(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return submit_copy(to, pointer(from), bytes, stream);
}

API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER("%#llx %zu %p", (unsigned long long)from, bytes, (void *)stream);
  if (!is_device(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return submit_copy(pointer(to), from, bytes, stream);
}

API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                  CUstream stream) {
  ENTER("%#llx %#llx %zu %p", (unsigned long long)to, (unsigned long long)from, bytes,
        (void *)stream);
  if (!is_device(to, bytes) || !is_device(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return submit_copy(to, from, bytes, stream);
}

API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, NULL);
}

API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, NULL);
}

API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, NULL);
}

typedef struct {
  void *to;
  int value;
  size_t bytes;
} Fill;

static void fill(void *data) {
  Fill *job = data;
  memset(job->to, job->value, job->bytes);
}

API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                             CUstream stream) {
  ENTER("%#llx %d %zu %p", (unsigned long long)to, value, bytes, (void *)stream);
  if (!is_device(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  Fill *job = malloc(sizeof *job);
  *job = (Fill){(void *)(uintptr_t)to, value, bytes};
  return fake_submit(stream, (Work){fill, job});
}

API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes) {
  return cuMemsetD8Async(to, value, bytes, NULL);
}
