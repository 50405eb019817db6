/* Modules and launches.
 *
 * An image is a cubin (ELF), PTX text, or "tcf-emulated:N:PATH": a library whose kernels have N
 * parameters of 8 bytes.  A kernel NAME is `int tcf_emulate_NAME(gx, gy, gz, bx, by, bz,
 * shared_bytes, void **arguments)` of that library, or for images of other kinds of one in
 * FAKE_LIBCUDA_EMULATORS; one that no library has cannot be found, unless there is no emulator at
 * all: then launches do nothing, which is what a measurement of their overhead wants.  A real
 * driver reads the number of parameters from the image; where the fake cannot know it, a launch
 * cannot be captured.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define EMULATED "tcf-emulated:"
#define MOST_ARGUMENTS 64
#define DEFAULT_SHARED 49152
#define UNKNOWN (-1)
enum { ELF_MACHINE = 18, ELF_MACHINE_CUDA = 190, ELF_FLAGS = 48 };
enum { LAUNCH_BUFFER = 1, LAUNCH_BUFFER_SIZE = 2 }; /* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE */
enum { FUNCTION_THREADS = 0, FUNCTION_REGISTERS = 4, FUNCTION_DYNAMIC_SHARED = 8 };

typedef int Emulated(unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     void **);

struct Function {
  char name[256];
  Emulated *run; /* NULL: nothing to do */
  int dynamic_shared, parameters;
  struct Function *next;
};

struct Module {
  void *library;  /* NULL: look at FAKE_LIBCUDA_EMULATORS */
  int parameters; /* UNKNOWN where the image does not say */
  struct Function *functions;
};

static pthread_mutex_t emulator = PTHREAD_MUTEX_INITIALIZER; /* it runs one kernel at a time */

/* What cuModuleLoadData says about an image that is not ours. */
static CUresult examine(const unsigned char *image) {
  if (memcmp(image, "\177ELF", 4)) {
    int text = strstr((const char *)image, ".version") != NULL;
    return text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
  }
  uint16_t machine;
  uint32_t flags;
  memcpy(&machine, image + ELF_MACHINE, sizeof machine);
  memcpy(&flags, image + ELF_FLAGS, sizeof flags);
  if (machine != ELF_MACHINE_CUDA) return CUDA_ERROR_INVALID_IMAGE;
  /* Cubins of CUDA 13 have the architecture in the second byte, older ones in the first. */
  int second = (int)(flags >> 8 & 0xff), arch = second >= 50 ? second : (int)(flags & 0xff);
  int same = arch / 10 == fake_arch() / 10 && arch <= fake_arch();
  return same ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  ENTER("%p", image);
  void *library = NULL;
  int parameters = UNKNOWN;
  if (!memcmp(image, EMULATED, sizeof EMULATED - 1)) {
    char *path;
    parameters = (int)strtol((const char *)image + sizeof EMULATED - 1, &path, 10);
    library = dlopen(path + 1, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      fprintf(stderr, "fake libcuda: %s\n", dlerror());
      return CUDA_ERROR_INVALID_IMAGE;
    }
  } else {
    CUresult refused = examine(image);
    if (refused) return refused;
  }
  *module = calloc(1, sizeof **module);
  (*module)->library = library;
  (*module)->parameters = parameters;
  fake_count(1);
  return CUDA_SUCCESS;
}

API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, int *options,
                                void **values) {
  (void)n, (void)options, (void)values;
  return cuModuleLoadData(module, image);
}

API CUresult cuModuleUnload(CUmodule module) {
  ENTER("%p", (void *)module);
  for (struct Function *f = module->functions, *next; f; f = next) {
    next = f->next;
    free(f);
  }
  if (module->library) dlclose(module->library);
  free(module);
  fake_count(-1);
  return CUDA_SUCCESS;
}

/* The function of that symbol in any library of FAKE_LIBCUDA_EMULATORS. */
static Emulated *anywhere(const char *symbol) {
  const char *variable = getenv("FAKE_LIBCUDA_EMULATORS");
  char *paths = strdup(variable ? variable : ""), *rest = paths, *path;
  Emulated *found = NULL;
  while (!found && (path = strsep(&rest, ":")) && *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* stays open */
    if (library)
      found = (Emulated *)dlsym(library, symbol);
    else
      fprintf(stderr, "fake libcuda: %s\n", dlerror());
  }
  free(paths);
  return found;
}

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  ENTER("%s", name);
  char symbol[300];
  snprintf(symbol, sizeof symbol, "tcf_emulate_%s", name);
  Emulated *run = module->library ? (Emulated *)dlsym(module->library, symbol) : anywhere(symbol);
  if (!run && (module->library || getenv("FAKE_LIBCUDA_EMULATORS"))) return CUDA_ERROR_NOT_FOUND;
  struct Function *made = calloc(1, sizeof *made);
  snprintf(made->name, sizeof made->name, "%s", name);
  made->run = run;
  made->dynamic_shared = DEFAULT_SHARED;
  made->parameters = module->parameters;
  made->next = module->functions;
  module->functions = made;
  *function = made;
  return CUDA_SUCCESS;
}

API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
  ENTER("%d %s", attribute, function->name);
  *value = attribute == FUNCTION_THREADS          ? 1024
           : attribute == FUNCTION_REGISTERS      ? 32
           : attribute == FUNCTION_DYNAMIC_SHARED ? function->dynamic_shared
                                                  : 0;
  return CUDA_SUCCESS;
}

API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  ENTER("%s %d %d", function->name, attribute, value);
  if (attribute == FUNCTION_DYNAMIC_SHARED) {
    if (value > fake_attribute(97)) return CUDA_ERROR_INVALID_VALUE;
    function->dynamic_shared = value;
  }
  return CUDA_SUCCESS;
}

API CUresult cuFuncSetCacheConfig(CUfunction function, int config) {
  ENTER("%s %d", function->name, config);
  return CUDA_SUCCESS;
}

API CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  ENTER("%s %d %d %d", function->name, x, y, z);
  return CUDA_SUCCESS; /* deprecated: a launch says it */
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                         int threads, size_t shared) {
  ENTER("%s %d %zu", function->name, threads, shared);
  *blocks = threads > 0 ? 2048 / threads : 0;
  return CUDA_SUCCESS;
}

/* ---- launches */

typedef struct {
  CUfunction function;
  unsigned grid[3], block[3], shared_bytes;
  uint64_t arguments[MOST_ARGUMENTS]; /* copied: a launch does not keep the caller's */
} Launch;

static void run(const Launch *job, void **arguments) {
  if (!job->function->run) return;
  const unsigned *g = job->grid, *b = job->block;
  pthread_mutex_lock(&emulator);
  int failed = job->function->run(g[0], g[1], g[2], b[0], b[1], b[2], job->shared_bytes, arguments);
  pthread_mutex_unlock(&emulator);
  if (failed) fake_fail_launch(job->function->name);
}

static void launch(void *data) {
  Launch *job = data;
  void *arguments[MOST_ARGUMENTS];
  for (int k = 0; k < MOST_ARGUMENTS; k++) arguments[k] = &job->arguments[k];
  run(job, arguments);
}

/* Arguments that the caller packed in one buffer, of 8 bytes each; NULL when it did not. */
static const char *packed(void **extra, int *count) {
  const char *buffer = NULL;
  for (; extra && *extra; extra += 2) {
    if (*extra == (void *)LAUNCH_BUFFER) buffer = extra[1];
    if (*extra == (void *)LAUNCH_BUFFER_SIZE) *count = (int)(*(size_t *)extra[1] / 8);
  }
  return buffer;
}

API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                            unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
                            CUstream stream, void **parameters, void **extra) {
  ENTER("%s grid %u,%u,%u block %u,%u,%u shared %u stream %p", function->name, gx, gy, gz, bx, by,
        bz, shared_bytes, (void *)stream);
  uint64_t threads = (uint64_t)bx * by * bz;
  int n = function->parameters;
  const char *buffer = packed(extra, &n);
  if (!gx || !gy || !gz || !threads || threads > 1024 || gx > 2147483647u || gy > 65535 ||
      gz > 65535 || (int64_t)shared_bytes > function->dynamic_shared || n > MOST_ARGUMENTS)
    return CUDA_ERROR_INVALID_VALUE;
  Launch job = {function, {gx, gy, gz}, {bx, by, bz}, shared_bytes, {0}};
  if (n == UNKNOWN) {
    if (fake_captures(stream)) return CUDA_ERROR_NOT_SUPPORTED;
    run(&job, parameters);
    return CUDA_SUCCESS;
  }
  for (int k = 0; k < n; k++)
    memcpy(&job.arguments[k], buffer ? buffer + 8 * k : parameters[k], 8);
  Launch *kept = malloc(sizeof *kept);
  *kept = job;
  return fake_submit(stream, (Work){launch, kept});
}
