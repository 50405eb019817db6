/* Names of errors, and entry points by name as the CUDA runtime finds them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "fake.h"

typedef struct {
  CUresult code;
  const char *name, *text;
} Error;

static const Error errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const Error *find(CUresult code) {
  for (size_t k = 0; k < sizeof errors / sizeof *errors; k++)
    if (errors[k].code == code) return &errors[k];
  return NULL;
}

API CUresult cuGetErrorName(CUresult code, const char **name) {
  const Error *error = find(code);
  *name = error ? error->name : NULL;
  return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGetErrorString(CUresult code, const char **text) {
  const Error *error = find(code);
  *text = error ? error->text : NULL;
  return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                 uint64_t flags, int *status) {
  static const char *const suffixes[] = {"_v4", "_v3", "_v2", ""};
  ENTER("%s %d %llu", name, version, (unsigned long long)flags);
  Dl_info info;
  void *self = dladdr((void *)find, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
  *function = NULL;
  for (size_t k = 0; self && !*function && k < sizeof suffixes / sizeof *suffixes; k++) {
    char symbol[200];
    snprintf(symbol, sizeof symbol, "%s%s", name, suffixes[k]);
    *function = dlsym(self, symbol);
  }
  if (self) dlclose(self);
  if (status) *status = *function ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

API CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* NVIDIA's own libraries ask for private tables; NVRTC takes no for an answer. */
API CUresult cuGetExportTable(const void **table, const void *id) {
  ENTER("%p", id);
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}
