/* A libcuda.so.1 without a GPU: enough of the driver API to launch, time and capture kernels.
 *
 * Device memory is host memory that the fake keeps a table of; work is done when it is asked for,
 * or when a graph that captured it is launched; events are the clock.  A kernel is a function
 * `tcf_emulate_NAME` of a library that an image names (see module.c).  Environment:
 *
 *   FAKE_LIBCUDA_EMULATORS  libraries with kernels, separated by colons, for images of any kind
 *   FAKE_LIBCUDA_LOG        a file that gets one line for each call
 *   FAKE_LIBCUDA_DEVICES    number of devices, 1 by default
 *   FAKE_LIBCUDA_ARCH       compute capability of the devices, 90 by default
 *   FAKE_LIBCUDA_FAIL       name of a function that fails with CUDA_ERROR_UNKNOWN
 *
 * Names and behaviour: CUDA driver API reference, CUDA 13.0.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct Stream *CUstream;
typedef struct Event *CUevent;
typedef struct Graph *CUgraph;
typedef struct Module *CUmodule;
typedef struct Function *CUfunction;
typedef struct Context *CUcontext;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_UNKNOWN = 999,
};

#define API __attribute__((visibility("default")))

/* First statement of every entry point: writes the log, and returns what went wrong earlier. */
#define ENTER(...)                                      \
  do {                                                  \
    CUresult entered = fake_enter(__func__, __VA_ARGS__); \
    if (entered) return entered;                        \
  } while (0)

/* The same for what does not touch the device and works after a failure too. */
#define ENTER_ALWAYS(...)                                         \
  do {                                                            \
    CUresult entered = fake_enter(__func__, __VA_ARGS__);         \
    if (entered == CUDA_ERROR_UNKNOWN) return entered;            \
  } while (0)

CUresult fake_enter(const char *function, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A kernel failed: every later call says so, as after a fault on a GPU. */
void fake_fail_launch(const char *kernel);

/* Objects that are alive, for tests that look for leaks. */
void fake_count(int change);
API int fake_live(void);

/* What must not be called while a stream captures. */
CUresult fake_refuse_capture(const char *function);

int fake_arch(void);
int fake_attribute(int attribute);
double fake_seconds(void);

/* Work that a stream does now or keeps for its graph. */
typedef struct {
  void (*run)(void *data);
  void *data; /* the stream's from here on; freed by the fake */
} Work;
CUresult fake_submit(CUstream stream, Work work);
int fake_captures(CUstream stream);

#endif
