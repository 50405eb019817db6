/* The part of CUDA's driver API that the shell needs, declared by us and opened with dlopen. */
#ifndef TCF_CUDA_DRIVER_H
#define TCF_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult; /* 0 is success */
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;

enum {
  CU_DEVICE_MULTIPROCESSORS = 16, /* CU_DEVICE_ATTRIBUTE_... */
  CU_DEVICE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_CAPABILITY_MINOR = 76,
  CU_DEVICE_SHARED_OPTIN = 97, /* bytes a block may have at most */
  CU_FUNCTION_STATIC_SHARED = 1, /* CU_FUNC_ATTRIBUTE_... */
  CU_FUNCTION_DYNAMIC_SHARED = 8,
  CU_JIT_ERROR_LOG = 5,
  CU_JIT_ERROR_LOG_BYTES = 6,
  CU_MEMHOST_PORTABLE = 1,
  CU_MEMHOST_MAPPED = 2,
};

/* clang-format off: one function a line, as FUNCTION(name here, symbol, parameters) */
#define TCF_DRIVER_FUNCTIONS(FUNCTION)                                                            \
  FUNCTION(init, "cuInit", unsigned flags)                                                        \
  FUNCTION(device_count, "cuDeviceGetCount", int *)                                               \
  FUNCTION(device_get, "cuDeviceGet", CUdevice *, int ordinal)                                    \
  FUNCTION(device_attribute, "cuDeviceGetAttribute", int *, int attribute, CUdevice)              \
  FUNCTION(retain_context, "cuDevicePrimaryCtxRetain", CUcontext *, CUdevice)                     \
  FUNCTION(release_context, "cuDevicePrimaryCtxRelease_v2", CUdevice)                             \
  FUNCTION(current_context, "cuCtxGetCurrent", CUcontext *)                                       \
  FUNCTION(context_device, "cuCtxGetDevice", CUdevice *)                                          \
  FUNCTION(push_context, "cuCtxPushCurrent_v2", CUcontext)                                        \
  FUNCTION(pop_context, "cuCtxPopCurrent_v2", CUcontext *)                                        \
  FUNCTION(load, "cuModuleLoadDataEx", CUmodule *, const void *image, unsigned n, int *options, void **values) \
  FUNCTION(unload, "cuModuleUnload", CUmodule)                                                    \
  FUNCTION(get_function, "cuModuleGetFunction", CUfunction *, CUmodule, const char *)             \
  FUNCTION(function_attribute, "cuFuncGetAttribute", int *, int attribute, CUfunction)            \
  FUNCTION(set_function_attribute, "cuFuncSetAttribute", CUfunction, int attribute, int value)    \
  FUNCTION(host_alloc, "cuMemHostAlloc", void **, size_t bytes, unsigned flags)                   \
  FUNCTION(host_free, "cuMemFreeHost", void *)                                                    \
  FUNCTION(host_pointer, "cuMemHostGetDevicePointer_v2", CUdeviceptr *, void *, unsigned flags)   \
  FUNCTION(launch, "cuLaunchKernel", CUfunction, unsigned gx, unsigned gy, unsigned gz,           \
           unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream, void **params, void **extra) \
  FUNCTION(error_name, "cuGetErrorName", CUresult, const char **)                                 \
  FUNCTION(error_text, "cuGetErrorString", CUresult, const char **)
/* clang-format on */

#define TCF_DRIVER_MEMBER(name, symbol, ...) CUresult (*name)(__VA_ARGS__);
typedef struct {
  TCF_DRIVER_FUNCTIONS(TCF_DRIVER_MEMBER)
} TcfDriver;

/* Valid once `tcf_count_devices` returned more than 0. */
__attribute__((visibility("hidden"))) extern TcfDriver tcf_driver;

typedef struct {
  int ordinal;
  CUdevice handle;
  int major, minor; /* compute capability */
  int multiprocessors;
  int shared_optin; /* bytes of shared memory that a block may have */
} TcfDevice;

/* GPUs that can be used; 0 without libcuda, a driver that works or a device.  Not for two threads
 * at once; after the first call it is cheap. */
__attribute__((visibility("hidden"))) int tcf_count_devices(void);

__attribute__((visibility("hidden"))) CUresult tcf_describe_device(int ordinal, TcfDevice *device);

#endif
