/* libcuda, if this machine has one.
 *
 * Nothing is linked: dlopen comes from the process that loads this library, and every process that
 * loads libraries has it (libc, or libdl of an old glibc). */
#include "tcf_cuda_driver.h"

extern void *dlopen(const char *name, int mode) __attribute__((weak));
extern void *dlsym(void *library, const char *name) __attribute__((weak));

enum { NOW = 2 /* RTLD_NOW */, UNKNOWN = -1 };

TcfDriver tcf_driver;

static int open_driver(void) {
  void *library = dlopen && dlsym ? dlopen("libcuda.so.1", NOW) : NULL;
  if (!library) return 0;
#define FIND(name, symbol, ...) \
  if (!(*(void **)&tcf_driver.name = dlsym(library, symbol))) return 0;
  TCF_DRIVER_FUNCTIONS(FIND)
#undef FIND
  return 1;
}

int tcf_count_devices(void) {
  static int devices = UNKNOWN;
  if (devices != UNKNOWN) return devices;
  devices = 0;
  int found = 0;
  if (open_driver() && !tcf_driver.init(0) && !tcf_driver.device_count(&found)) devices = found;
  return devices;
}

CUresult tcf_describe_device(int ordinal, TcfDevice *device) {
  const struct {
    int attribute, *value;
  } wanted[] = {
      {CU_DEVICE_CAPABILITY_MAJOR, &device->major},
      {CU_DEVICE_CAPABILITY_MINOR, &device->minor},
      {CU_DEVICE_MULTIPROCESSORS, &device->multiprocessors},
      {CU_DEVICE_SHARED_OPTIN, &device->shared_optin},
  };
  device->ordinal = ordinal;
  CUresult result = tcf_driver.device_get(&device->handle, ordinal);
  for (size_t k = 0; !result && k < sizeof wanted / sizeof *wanted; k++)
    result = tcf_driver.device_attribute(wanted[k].value, wanted[k].attribute, device->handle);
  return result;
}
