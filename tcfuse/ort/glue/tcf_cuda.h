/* How a region runs on a GPU: its launches, its code, and code that is loaded. */
#ifndef TCF_CUDA_H
#define TCF_CUDA_H

#include "tcf_cuda_driver.h"
#include "tcf_region.h"
#include "tcf_text.h"

/* Numbers of one launch. */
typedef struct {
  int64_t blocks;       /* that there is work for */
  int64_t shared_bytes; /* dynamic shared memory of a block */
} TcfGrid;

/* One way to run a phase: a kernel whose parameters are a pointer to each tensor, the scratch, the
 * fault flag and every size. */
typedef struct {
  const char *symbol;
  int phase; /* the first launch of a phase whose `plan` returns 1 is used */
  int block; /* threads */
  int blocks_per_multiprocessor; /* at most; 0: no limit */
  int (*plan)(const int64_t *sizes, int64_t alignment, int64_t shared_limit, TcfGrid *grid);
} TcfLaunch;

/* Code for one architecture. */
typedef struct {
  int major, minor; /* compute capability */
  char is_ptx;      /* the driver compiles it, for that architecture and all newer ones */
  char is_exact;    /* runs on that very architecture alone */
  const unsigned char *data; /* PTX ends in NUL */
} TcfImage;

struct TcfCuda {
  const TcfLaunch *launches;
  int n_launches;
  const TcfImage *images;
  int n_images;
  int64_t (*scratch)(const int64_t *sizes); /* bytes of global memory for one call */
};

typedef struct {
  CUfunction handle;
  int64_t shared_limit; /* bytes of dynamic shared memory that a block may ask for */
} TcfFunction;

/* A region's code on one device, shared by all nodes that run it there. */
typedef struct TcfModule TcfModule;
struct TcfModule {
  TcfModule *next;
  const TcfRegion *region;
  int users;
  TcfDevice device;
  CUcontext context;
  CUmodule handle;
  TcfFunction functions[]; /* one a launch */
};

/* The best code for a device; NULL: there is none that it can run. */
TCF_HIDDEN const TcfImage *tcf_choose_image(const TcfCuda *cuda, const TcfDevice *device);

/* "sm_90" */
TCF_HIDDEN void tcf_put_architecture(TcfText *text, const char *prefix, int major, int minor);

/* The region's code on device `ordinal`, loaded if no other node did so; warnings go to the log. */
TCF_HIDDEN OrtStatus *tcf_acquire_module(const TcfRegion *region, int ordinal,
                                         const OrtLogger *logger, TcfModule **module);
TCF_HIDDEN void tcf_release_module(TcfModule *module);

/* Between the two, the module's context is the thread's. */
TCF_HIDDEN CUresult tcf_enter_context(const TcfModule *module);
TCF_HIDDEN void tcf_leave_context(void);

/* "tcfuse: softmax: <doing> on device 0 (sm_90): CUDA_ERROR_INVALID_IMAGE: <what that means>" */
TCF_HIDDEN OrtStatus *tcf_driver_failed(const TcfRegion *region, const TcfDevice *device,
                                        const char *doing, CUresult result, const char *log);

#endif
