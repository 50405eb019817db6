/* What all entry points share: the log, the error that sticks, the count of objects, the clock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static CUresult stuck; /* after a launch has failed the context is lost */
static int live;

CUresult fake_enter(const char *function, const char *format, ...) {
  const char *path = getenv("FAKE_LIBCUDA_LOG");
  const char *failing = getenv("FAKE_LIBCUDA_FAIL");
  if (path) {
    pthread_mutex_lock(&log_lock);
    FILE *file = fopen(path, "a");
    if (file) {
      va_list arguments;
      va_start(arguments, format);
      fprintf(file, "%s ", function);
      vfprintf(file, format, arguments);
      fputc('\n', file);
      va_end(arguments);
      fclose(file);
    }
    pthread_mutex_unlock(&log_lock);
  }
  if (failing && !strcmp(failing, function)) return CUDA_ERROR_UNKNOWN;
  return stuck;
}

void fake_fail_launch(const char *kernel) {
  fprintf(stderr, "fake libcuda: kernel %s failed\n", kernel);
  stuck = CUDA_ERROR_LAUNCH_FAILED;
}

void fake_count(int change) { __atomic_add_fetch(&live, change, __ATOMIC_RELAXED); }

API int fake_live(void) { return __atomic_load_n(&live, __ATOMIC_RELAXED); }

double fake_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
