/* Kernels of test_cuda_shell.py as the fake libcuda calls them: whole grids, one after the other.
 *
 * Arguments: a pointer to each tensor, the scratch, the fault flag, each size. */
#include <stdint.h>

#define KERNEL(name)                                                                          \
  __attribute__((visibility("default"))) int tcf_emulate_##name(                              \
      unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,           \
      unsigned shared, void **a)
#define ARGUMENT(type, k) (*(type *)a[k])

/* x, y, scratch, fault, n0, n1: the mean of each column of x goes to scratch */
static int mean(void **a) {
  const float *x = ARGUMENT(float *, 0);
  double *means = ARGUMENT(double *, 2);
  int64_t n0 = ARGUMENT(int64_t, 4), n1 = ARGUMENT(int64_t, 5);
  for (int64_t j = 0; j < n1; j++) {
    double sum = 0;
    for (int64_t i = 0; i < n0; i++) sum += x[i * n1 + j];
    means[j] = sum / n0;
  }
  return 0;
}

static int subtract(void **a) {
  const float *x = ARGUMENT(float *, 0);
  float *y = ARGUMENT(float *, 1);
  const double *means = ARGUMENT(double *, 2);
  int64_t n0 = ARGUMENT(int64_t, 4), n1 = ARGUMENT(int64_t, 5);
  for (int64_t i = 0; i < n0 * n1; i++) y[i] = (float)(x[i] - means[i % n1]);
  return 0;
}

KERNEL(center_mean_shared) { return mean(a); }
KERNEL(center_mean) { return mean(a); }
KERNEL(center_vectors) { return subtract(a); }
KERNEL(center_elements) { return subtract(a); }

/* table, index, y, scratch, fault, n0, n1, n2: y(i, j) = table(index(i), j) */
KERNEL(take_rows) {
  const float *table = ARGUMENT(float *, 0);
  const int64_t *index = ARGUMENT(int64_t *, 1);
  float *y = ARGUMENT(float *, 2);
  int64_t n0 = ARGUMENT(int64_t, 5), n1 = ARGUMENT(int64_t, 6), n2 = ARGUMENT(int64_t, 7);
  if (ARGUMENT(char *, 3)) return 1; /* it asks for no scratch */
  for (int64_t i = 0; i < n2; i++) {
    if (index[i] < 0 || index[i] >= n0) {
      *ARGUMENT(int32_t *, 4) = 1;
      continue;
    }
    for (int64_t j = 0; j < n1; j++) y[i * n1 + j] = table[index[i] * n1 + j];
  }
  return 0;
}
