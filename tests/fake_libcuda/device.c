/* Devices like an H100, and their contexts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define MEMORY_BYTES ((size_t)16 << 30)
#define VERSION 13000

struct Context {
  int unused;
};
static struct Context primary;
static __thread CUcontext stack[64];
static __thread int depth;

static int number(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

int fake_arch(void) { return number("FAKE_LIBCUDA_ARCH", 90); }

static int devices(void) { return number("FAKE_LIBCUDA_DEVICES", 1); }

int fake_attribute(int attribute) {
  switch (attribute) { /* CUdevice_attribute */
    case 1: return 1024;      /* threads of a block */
    case 2: case 3: return 1024;
    case 4: return 64;
    case 5: return 2147483647; /* blocks of a grid */
    case 6: case 7: return 65535;
    case 8: return 49152;     /* shared memory of a block */
    case 10: return 32;       /* threads of a warp */
    case 12: case 82: return 65536; /* registers of a block, of a multiprocessor */
    case 13: return 1980000;  /* kHz */
    case 16: return 132;      /* multiprocessors */
    case 19: return 1;        /* host memory can be mapped */
    case 36: return 2619000;  /* kHz of memory */
    case 37: return 5120;     /* bits of the memory bus */
    case 38: return 52428800; /* bytes of L2 */
    case 39: return 2048;     /* threads of a multiprocessor */
    case 41: return 1;        /* unified addressing */
    case 75: return fake_arch() / 10;
    case 76: return fake_arch() % 10;
    case 81: return 233472;   /* shared memory of a multiprocessor */
    case 97: return 232448;   /* shared memory of a block that asks for it */
    case 106: return 32;      /* blocks of a multiprocessor */
    case 115: return 1;       /* memory pools */
    default: return 0;
  }
}

API CUresult cuInit(unsigned flags) {
  ENTER("%u", flags);
  return devices() > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

API CUresult cuDriverGetVersion(int *version) {
  ENTER(".");
  *version = VERSION;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *count) {
  ENTER(".");
  *count = devices();
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER("%d", ordinal);
  if (ordinal < 0 || ordinal >= devices()) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
  ENTER("%d", device);
  snprintf(name, (size_t)bytes, "fake sm_%d", fake_arch());
  return CUDA_SUCCESS;
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  ENTER("%d", device);
  *bytes = MEMORY_BYTES;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  ENTER("%d %d", attribute, device);
  *value = fake_attribute(attribute);
  return CUDA_SUCCESS;
}

API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  ENTER("%d", device);
  *major = fake_arch() / 10;
  *minor = fake_arch() % 10;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetUuid_v2(char *uuid, CUdevice device) {
  ENTER("%d", device);
  memset(uuid, 7, 16);
  return CUDA_SUCCESS;
}

/* ---- contexts: each is the primary one */

static CUresult push(CUcontext context) {
  if (depth == (int)(sizeof stack / sizeof *stack)) return CUDA_ERROR_INVALID_VALUE;
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER_ALWAYS("%d", device);
  fake_count(1);
  *context = &primary;
  return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER_ALWAYS("%d", device);
  fake_count(-1);
  return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  ENTER_ALWAYS("%d", device);
  *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}

API CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
  ENTER_ALWAYS("%u %d", flags, device);
  fake_count(1);
  *context = &primary;
  return push(&primary);
}

API CUresult cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned flags,
                            CUdevice device) {
  (void)parameters;
  return cuCtxCreate_v2(context, flags, device);
}

API CUresult cuCtxDestroy_v2(CUcontext context) {
  ENTER_ALWAYS("%p", (void *)context);
  fake_count(-1);
  return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ENTER_ALWAYS("%p", (void *)context);
  return push(context);
}

API CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  ENTER_ALWAYS(".");
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  depth--;
  if (context) *context = stack[depth];
  return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER_ALWAYS("%p", (void *)context);
  if (depth) depth--;
  return context ? push(context) : CUDA_SUCCESS;
}

API CUresult cuCtxGetCurrent(CUcontext *context) {
  ENTER_ALWAYS(".");
  *context = depth ? stack[depth - 1] : NULL;
  return CUDA_SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *device) {
  ENTER_ALWAYS(".");
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  *device = 0;
  return CUDA_SUCCESS;
}

API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
  ENTER_ALWAYS("%p", (void *)context);
  *version = VERSION;
  return CUDA_SUCCESS;
}

API CUresult cuCtxSynchronize(void) {
  ENTER(".");
  return fake_refuse_capture(__func__);
}
