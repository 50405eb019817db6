/* A region's code, on its way into the memory of a GPU.
 *
 * Modules, not libraries (cuLibraryLoadData): a module is loaded into the one context that will
 * run it, and asking for its functions and their attributes loads those too, so nothing is left
 * for a launch, which may happen while a CUDA graph is captured.  The context is the device's
 * primary one, where ONNX Runtime's provider works. */
#include "tcf_cuda.h"

extern int sched_yield(void) __attribute__((weak));

static TcfModule *modules; /* loaded ones */
static char loading;       /* who has it may change `modules` */

/* The best code, or the best PTX. */
static const TcfImage *choose(const TcfCuda *cuda, const TcfDevice *device, int ptx_only) {
  const TcfImage *best = NULL;
  for (int k = 0; k < cuda->n_images; k++) {
    const TcfImage *image = &cuda->images[k];
    int same = image->major == device->major && image->minor == device->minor;
    int older = image->major < device->major ||
                (image->major == device->major && image->minor <= device->minor);
    int runs = image->is_exact ? same
               : image->is_ptx ? older
                               : older && image->major == device->major;
    if (!runs || (ptx_only && !image->is_ptx)) continue;
    /* Code over PTX, then the newer architecture, then what is made for this very one. */
    if (!best || image->is_ptx < best->is_ptx ||
        (image->is_ptx == best->is_ptx &&
         (image->major != best->major ? image->major > best->major
          : image->minor != best->minor
              ? image->minor > best->minor
              : image->is_exact > best->is_exact)))
      best = image;
  }
  return best;
}

const TcfImage *tcf_choose_image(const TcfCuda *cuda, const TcfDevice *device) {
  return choose(cuda, device, 0);
}

void tcf_put_architecture(TcfText *text, const char *prefix, int major, int minor) {
  tcf_put(text, prefix);
  tcf_put_number(text, major);
  tcf_put_number(text, minor);
}

static void put_device(TcfText *text, const TcfDevice *device) {
  tcf_put(text, " on device ");
  tcf_put_number(text, device->ordinal);
  tcf_put_architecture(text, " (sm_", device->major, device->minor);
  tcf_put(text, ")");
}

OrtStatus *tcf_driver_failed(const TcfRegion *region, const TcfDevice *device, const char *doing,
                             CUresult result, const char *log) {
  const char *name = NULL, *meaning = NULL;
  TcfText text = {0};
  tcf_put(&text, "tcfuse: ");
  tcf_put(&text, region->name);
  tcf_put(&text, ": ");
  tcf_put(&text, doing);
  put_device(&text, device);
  tcf_put(&text, ": ");
  if (tcf_driver.error_name(result, &name) || !name) name = "an unknown error of the driver";
  tcf_put(&text, name);
  if (!tcf_driver.error_text(result, &meaning) && meaning) {
    tcf_put(&text, ": ");
    tcf_put(&text, meaning);
  }
  if (log && log[0]) {
    tcf_put(&text, "; ");
    tcf_put(&text, log);
  }
  return ORT(CreateStatus)(ORT_RUNTIME_EXCEPTION, text.text);
}

static void put_images(TcfText *text, const TcfCuda *cuda) {
  for (int k = 0; k < cuda->n_images; k++) {
    const TcfImage *image = &cuda->images[k];
    tcf_put(text, k ? ", " : "");
    tcf_put_architecture(text, image->is_ptx ? "PTX of compute_" : "sm_", image->major,
                         image->minor);
    tcf_put(text, image->is_exact ? "a" : "");
  }
}

static OrtStatus *no_image(const TcfRegion *region, const TcfDevice *device) {
  TcfText text = {0};
  tcf_put(&text, "tcfuse: ");
  tcf_put(&text, region->name);
  tcf_put(&text, ": no code that runs");
  put_device(&text, device);
  tcf_put(&text, "; the library has ");
  put_images(&text, region->cuda);
  return ORT(CreateStatus)(ORT_RUNTIME_EXCEPTION, text.text);
}

/* Say, once for all regions, that the driver compiles PTX because an architecture is missing. */
static void warn_of_ptx(const TcfRegion *region, const TcfDevice *device, const TcfImage *image,
                        const OrtLogger *logger) {
  static char told;
  if (!logger || __atomic_test_and_set(&told, __ATOMIC_RELAXED)) return;
  TcfText text = {0};
  tcf_put_architecture(&text, "tcfuse: the library has no code for sm_", device->major,
                       device->minor);
  tcf_put_architecture(&text, ", so the driver compiles its PTX for compute_", image->major,
                       image->minor);
  tcf_put_architecture(&text, ", which takes time and may be slower; optimize with --cuda-arch sm_",
                       device->major, device->minor);
  tcf_put(&text, " (");
  tcf_put(&text, region->name);
  tcf_put(&text, " has ");
  put_images(&text, region->cuda);
  tcf_put(&text, ")");
  OrtStatus *status = ORT(Logger_LogMessage)(logger, ORT_LOG_WARNING, text.text,
                                             "tcf_cuda_module.c", __LINE__, "warn_of_ptx");
  if (status) ORT(ReleaseStatus)(status);
}

/* Say, once, that the driver refuses code and compiles PTX instead: it is older than the code. */
static void warn_of_refusal(const TcfRegion *region, const TcfDevice *device,
                            const TcfImage *refused, const TcfImage *image,
                            const OrtLogger *logger) {
  static char told;
  if (!logger || __atomic_test_and_set(&told, __ATOMIC_RELAXED)) return;
  TcfText text = {0};
  tcf_put_architecture(&text, "tcfuse: the driver of a device sm_", device->major,
                       device->minor);
  tcf_put_architecture(&text, " refuses code for sm_", refused->major, refused->minor);
  tcf_put_architecture(&text, " and compiles PTX for compute_", image->major, image->minor);
  tcf_put(&text, ", which takes time and may be slower; a newer driver takes the code (");
  tcf_put(&text, region->name);
  tcf_put(&text, ")");
  OrtStatus *status = ORT(Logger_LogMessage)(logger, ORT_LOG_WARNING, text.text,
                                             "tcf_cuda_module.c", __LINE__, "warn_of_refusal");
  if (status) ORT(ReleaseStatus)(status);
}

/* Every function of the module, with as much shared memory as its blocks may have. */
static OrtStatus *find_functions(TcfModule *module) {
  const TcfCuda *cuda = module->region->cuda;
  for (int k = 0; k < cuda->n_launches; k++) {
    TcfFunction *function = &module->functions[k];
    int fixed = 0;
    CUresult result =
        tcf_driver.get_function(&function->handle, module->handle, cuda->launches[k].symbol);
    if (!result)
      result = tcf_driver.function_attribute(&fixed, CU_FUNCTION_STATIC_SHARED, function->handle);
    function->shared_limit = module->device.shared_optin - fixed;
    if (!result)
      result = tcf_driver.set_function_attribute(function->handle, CU_FUNCTION_DYNAMIC_SHARED,
                                                 (int)function->shared_limit);
    if (result)
      return tcf_driver_failed(module->region, &module->device, cuda->launches[k].symbol, result,
                               NULL);
  }
  return NULL;
}

/* Load the code into the current context, which is the module's. */
static OrtStatus *load_image(TcfModule *module, const TcfImage *image) {
  char log[256] = {0};
  int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)sizeof log};
  CUresult result = tcf_driver.load(&module->handle, image->data, 2, options, values);
  if (result) {
    TcfText doing = {0};
    const char *what = image->is_ptx ? "loading PTX for compute_" : "loading code for sm_";
    tcf_put_architecture(&doing, what, image->major, image->minor);
    log[sizeof log - 1] = 0;
    return tcf_driver_failed(module->region, &module->device, doing.text, result, log);
  }
  OrtStatus *status = find_functions(module);
  if (status) tcf_driver.unload(module->handle);
  return status;
}

/* Load the best code, or PTX where the driver is too old for it. */
static OrtStatus *load_best(TcfModule *module, const TcfImage *image, const OrtLogger *logger) {
  OrtStatus *status = load_image(module, image);
  if (!status || image->is_ptx) return status;
  const TcfImage *other = choose(module->region->cuda, &module->device, 1);
  if (!other) return status;
  OrtStatus *again = load_image(module, other);
  if (again) { /* the first says what is wrong */
    ORT(ReleaseStatus)(again);
    return status;
  }
  ORT(ReleaseStatus)(status);
  warn_of_refusal(module->region, &module->device, image, other, logger);
  return NULL;
}

CUresult tcf_enter_context(const TcfModule *module) {
  return tcf_driver.push_context(module->context);
}

void tcf_leave_context(void) {
  CUcontext popped;
  tcf_driver.pop_context(&popped);
}

/* Fill in a module whose device is known. */
static OrtStatus *load_module(TcfModule *module, const OrtLogger *logger) {
  const TcfImage *image = tcf_choose_image(module->region->cuda, &module->device);
  if (!image) return no_image(module->region, &module->device);
  if (image->is_ptx) warn_of_ptx(module->region, &module->device, image, logger);
  CUresult result = tcf_driver.retain_context(&module->context, module->device.handle);
  if (result)
    return tcf_driver_failed(module->region, &module->device, "no context", result, NULL);
  OrtStatus *status;
  result = tcf_enter_context(module);
  if (result) {
    status = tcf_driver_failed(module->region, &module->device, "no context", result, NULL);
  } else {
    status = load_best(module, image, logger);
    tcf_leave_context();
  }
  if (status) tcf_driver.release_context(module->device.handle);
  return status;
}

static OrtStatus *make_module(const TcfRegion *region, int ordinal, const OrtLogger *logger,
                              TcfModule **made) {
  OrtAllocator *allocator; /* lent */
  TCF_TRY(ORT(GetAllocatorWithDefaultOptions)(&allocator));
  size_t functions_bytes = sizeof(TcfFunction) * (size_t)region->cuda->n_launches;
  TcfModule *module = allocator->Alloc(allocator, sizeof(TcfModule) + functions_bytes);
  if (!module) return ORT(CreateStatus)(ORT_RUNTIME_EXCEPTION, "tcfuse: there is no memory");
  *module = (TcfModule){.region = region};
  CUresult result = tcf_describe_device(ordinal, &module->device);
  OrtStatus *status =
      result ? tcf_driver_failed(region, &module->device, "no properties", result, NULL)
             : load_module(module, logger);
  if (status) {
    allocator->Free(allocator, module);
    return status;
  }
  *made = module;
  return NULL;
}

static void lock_modules(void) {
  while (__atomic_test_and_set(&loading, __ATOMIC_ACQUIRE)) /* another session loads code */
    if (sched_yield) sched_yield();
}

static void unlock_modules(void) { __atomic_clear(&loading, __ATOMIC_RELEASE); }

OrtStatus *tcf_acquire_module(const TcfRegion *region, int ordinal, const OrtLogger *logger,
                              TcfModule **module) {
  OrtStatus *status = NULL;
  lock_modules();
  TcfModule *found = modules;
  while (found && (found->region != region || found->device.ordinal != ordinal))
    found = found->next;
  if (!found && !(status = make_module(region, ordinal, logger, &found))) {
    found->next = modules;
    modules = found;
  }
  if (!status) found->users++;
  unlock_modules();
  *module = found;
  return status;
}

void tcf_release_module(TcfModule *module) {
  OrtAllocator *allocator;
  OrtStatus *status = ORT(GetAllocatorWithDefaultOptions)(&allocator);
  if (status) { /* it stays, for the next node */
    ORT(ReleaseStatus)(status);
    return;
  }
  lock_modules();
  if (--module->users == 0) {
    TcfModule **place = &modules;
    while (*place != module) place = &(*place)->next;
    *place = module->next;
    if (!tcf_enter_context(module)) { /* whatever thread ends the session */
      tcf_driver.unload(module->handle);
      tcf_leave_context();
    }
    tcf_driver.release_context(module->device.handle);
    allocator->Free(allocator, module);
  }
  unlock_modules();
}
