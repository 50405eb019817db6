/* The part of ONNX Runtime's C ABI that a library of custom operators needs, declared by us.
 *
 * OrtApi is a table of function pointers that only grows at its end, so a function is its slot
 * number.  ORT(Name) is the typed function in slot Name; it is valid from the runtime version in
 * the last column on (the minor of "1.MINOR.PATCH" is the API version). */
#ifndef TCF_ORT_ABI_H
#define TCF_ORT_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct OrtStatus OrtStatus; /* NULL means success */
typedef struct OrtValue OrtValue;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtTensorShape OrtTensorShape; /* OrtTensorTypeAndShapeInfo */
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtLogger OrtLogger;
typedef struct OrtCustomOp OrtCustomOp;
typedef const void *const *OrtApi;

typedef struct {
  OrtApi (*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

typedef struct OrtAllocator OrtAllocator;
struct OrtAllocator {
  uint32_t version;
  void *(*Alloc)(OrtAllocator *self, size_t bytes);
  void (*Free)(OrtAllocator *self, void *memory);
};

enum { ORT_FAIL = 1, ORT_INVALID_ARGUMENT = 2, ORT_RUNTIME_EXCEPTION = 6 };
enum { ORT_ALLOCATOR_ARENA = 1, ORT_MEMORY_DEFAULT = 0 };
enum { ORT_LOG_WARNING = 2 };

#define TCF_SLOT(number, result, name, ...) \
  enum { name##_slot = number };            \
  typedef result (*name##_function)(__VA_ARGS__);

/* clang-format off: one function a line, with the first runtime version that has it */
TCF_SLOT(0, OrtStatus *, CreateStatus, int code, const char *message)                         /* 1 */
TCF_SLOT(26, OrtStatus *, CreateCustomOpDomain, const char *, OrtCustomOpDomain **)           /* 1 */
TCF_SLOT(27, OrtStatus *, CustomOpDomain_Add, OrtCustomOpDomain *, const OrtCustomOp *)       /* 1 */
TCF_SLOT(28, OrtStatus *, AddCustomOpDomain, OrtSessionOptions *, OrtCustomOpDomain *)        /* 1 */
TCF_SLOT(51, OrtStatus *, GetTensorMutableData, OrtValue *, void **)                          /* 1 */
TCF_SLOT(57, OrtStatus *, CreateTensorTypeAndShapeInfo, OrtTensorShape **)                    /* 1 */
TCF_SLOT(58, OrtStatus *, SetTensorElementType, OrtTensorShape *, int)                        /* 1 */
TCF_SLOT(59, OrtStatus *, SetDimensions, OrtTensorShape *, const int64_t *, size_t)           /* 1 */
TCF_SLOT(61, OrtStatus *, GetDimensionsCount, const OrtTensorShape *, size_t *)               /* 1 */
TCF_SLOT(62, OrtStatus *, GetDimensions, const OrtTensorShape *, int64_t *, size_t)           /* 1 */
TCF_SLOT(63, OrtStatus *, GetSymbolicDimensions, const OrtTensorShape *, const char **, size_t) /* 1 */
TCF_SLOT(65, OrtStatus *, GetTensorTypeAndShape, const OrtValue *, OrtTensorShape **)         /* 1 */
TCF_SLOT(68, OrtStatus *, CreateMemoryInfo, const char *, int allocator, int id, int memory, OrtMemoryInfo **) /* 1 */
TCF_SLOT(72, OrtStatus *, MemoryInfoGetId, const OrtMemoryInfo *, int *)                      /* 1 */
TCF_SLOT(77, OrtStatus *, AllocatorGetInfo, const OrtAllocator *, const OrtMemoryInfo **)     /* 1 */
TCF_SLOT(78, OrtStatus *, GetAllocatorWithDefaultOptions, OrtAllocator **)                    /* 1 */
TCF_SLOT(90, OrtStatus *, KernelContext_GetInput, const OrtKernelContext *, size_t, OrtValue **) /* 1 */
TCF_SLOT(91, OrtStatus *, KernelContext_GetOutput, OrtKernelContext *, size_t, const int64_t *, size_t, OrtValue **) /* 1 */
TCF_SLOT(93, void, ReleaseStatus, OrtStatus *)                                                /* 1 */
TCF_SLOT(99, void, ReleaseTensorTypeAndShapeInfo, OrtTensorShape *)                           /* 1 */
TCF_SLOT(132, void, ReleaseAllocator, OrtAllocator *)                                         /* 2 */
TCF_SLOT(193, OrtStatus *, KernelContext_GetGPUComputeStream, const OrtKernelContext *, void **) /* 10 */
TCF_SLOT(194, OrtStatus *, GetTensorMemoryInfo, const OrtValue *, const OrtMemoryInfo **)     /* 10 */
TCF_SLOT(237, OrtStatus *, HasSessionConfigEntry, const OrtSessionOptions *, const char *, int *) /* 14 */
TCF_SLOT(238, OrtStatus *, GetSessionConfigEntry, const OrtSessionOptions *, const char *, char *, size_t *) /* 14 */
TCF_SLOT(245, OrtStatus *, KernelInfo_GetLogger, const OrtKernelInfo *, const OrtLogger **)   /* 15 */
TCF_SLOT(247, OrtStatus *, Logger_LogMessage, const OrtLogger *, int severity, const char *message, const char *file, int line, const char *function) /* 15 */
TCF_SLOT(249, OrtStatus *, KernelInfoGetConstantInput_tensor, const OrtKernelInfo *, size_t, int *, OrtValue **) /* 15 */
TCF_SLOT(253, OrtStatus *, KernelContext_GetAllocator, const OrtKernelContext *, const OrtMemoryInfo *, OrtAllocator **) /* 15 */
TCF_SLOT(268, OrtStatus *, ShapeInferContext_GetInputTypeShape, const OrtShapeInferContext *, size_t, OrtTensorShape **) /* 17 */
TCF_SLOT(270, OrtStatus *, ShapeInferContext_SetOutputTypeShape, const OrtShapeInferContext *, size_t, const OrtTensorShape *) /* 17 */
TCF_SLOT(271, OrtStatus *, SetSymbolicDimensions, OrtTensorShape *, const char **, size_t)    /* 17 */
TCF_SLOT(274, OrtStatus *, KernelContext_ParallelFor, const OrtKernelContext *, void (*)(void *, size_t), size_t, size_t, void *) /* 17 */
TCF_SLOT(277, OrtStatus *, KernelContext_GetScratchBuffer, const OrtKernelContext *, const OrtMemoryInfo *, size_t, void **) /* 18 */
TCF_SLOT(278, OrtStatus *, KernelInfoGetAllocator, const OrtKernelInfo *, int memory, OrtAllocator **) /* 18 */
TCF_SLOT(297, const char *, GetKeyValue, const OrtKeyValuePairs *, const char *key)           /* 22 */
TCF_SLOT(300, void, ReleaseKeyValuePairs, OrtKeyValuePairs *)                                 /* 22 */
TCF_SLOT(391, OrtStatus *, KernelInfo_GetConfigEntries, const OrtKernelInfo *, OrtKeyValuePairs **) /* 24 */
TCF_SLOT(414, OrtStatus *, GetTensorElementTypeAndShapeDataReference, const OrtValue *, int *, const int64_t **, size_t *) /* 24 */
/* clang-format on */

/* The runtime that registered this library; set once, before any operator of it runs. */
__attribute__((visibility("hidden"))) extern OrtApi tcf_api;
__attribute__((visibility("hidden"))) extern uint32_t tcf_runtime_minor;

#define ORT(name) ((name##_function)tcf_api[name##_slot])

/* Return the status of a failed call to the caller. */
#define TCF_TRY(call)              \
  do {                             \
    OrtStatus *status_ = (call);   \
    if (status_) return status_;   \
  } while (0)

/* One operator.  A callback is read only when `version` is at least the one in the comment, and
 * ones marked "required" then must not be NULL. */
struct OrtCustomOp {
  uint32_t version;
  void *(*CreateKernel)(const OrtCustomOp *, OrtApi, const OrtKernelInfo *); /* 1 */
  const char *(*GetName)(const OrtCustomOp *);                               /* 1, required */
  const char *(*GetExecutionProviderType)(const OrtCustomOp *);              /* 1, NULL result: CPU */
  int (*GetInputType)(const OrtCustomOp *, size_t);                          /* 1, required */
  size_t (*GetInputTypeCount)(const OrtCustomOp *);                          /* 1, required */
  int (*GetOutputType)(const OrtCustomOp *, size_t);                         /* 1, required */
  size_t (*GetOutputTypeCount)(const OrtCustomOp *);                         /* 1, required */
  void (*KernelCompute)(void *, OrtKernelContext *);                         /* 1 */
  void (*KernelDestroy)(void *);                                             /* 1, required */
  int (*GetInputCharacteristic)(const OrtCustomOp *, size_t);                /* 8, required */
  int (*GetOutputCharacteristic)(const OrtCustomOp *, size_t);               /* 8, required */
  int (*GetInputMemoryType)(const OrtCustomOp *, size_t);                    /* 13, required */
  int (*GetVariadicInputMinArity)(const OrtCustomOp *);                      /* 14, required */
  int (*GetVariadicInputHomogeneity)(const OrtCustomOp *);                   /* 14, required */
  int (*GetVariadicOutputMinArity)(const OrtCustomOp *);                     /* 14, required */
  int (*GetVariadicOutputHomogeneity)(const OrtCustomOp *);                  /* 14, required */
  OrtStatus *(*CreateKernelV2)(const OrtCustomOp *, OrtApi, const OrtKernelInfo *, void **); /* 16 */
  OrtStatus *(*KernelComputeV2)(void *, OrtKernelContext *);                 /* 16 */
  OrtStatus *(*InferOutputShapeFn)(const OrtCustomOp *, OrtShapeInferContext *); /* 17 */
  int (*GetStartVersion)(const OrtCustomOp *);                               /* 17 */
  int (*GetEndVersion)(const OrtCustomOp *);                                 /* 17 */
  size_t (*GetMayInplace)(int **, int **);                                   /* 18 */
  void (*ReleaseMayInplace)(int *, int *);                                   /* 18 */
  size_t (*GetAliasMap)(int **, int **);                                     /* 18 */
  void (*ReleaseAliasMap)(int *, int *);                                     /* 18 */
};
_Static_assert(sizeof(void *) != 8 || sizeof(OrtCustomOp) == 208, "layout of OrtCustomOp");

#endif
