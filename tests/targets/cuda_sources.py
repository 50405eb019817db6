"""CUDA sources written by hand, for tests of what compiles them."""

from __future__ import annotations

from tcfuse.interface import Interface, Port
from tcfuse.targets.base import CudaPhase, CudaSource, Launch
from tcfuse.types import DType, TensorType

HEADER = """
namespace tcf {
template <class T> struct pair { T first, second; };
static __device__ __forceinline__ float team_sum(float x) {
  for (int distance = 16; distance; distance /= 2) x += __shfl_xor_sync(~0u, x, distance);
  return x;
}
}
"""
INCLUDE = '#include "tcf_device.hpp"\n'
PARAMETERS = "(const float* x, float* y, char* scratch, int* fault, long long n)"


def source(name: str, body: str, *symbols: str, block: int = 256, **more: bool) -> CudaSource:
    """A source with one input, one output and one launch for each symbol."""
    vector = TensorType(DType.FLOAT32, ("n",))
    interface = Interface((Port("x", vector),), (Port("y", vector),), ("n",))
    launches = [Launch(symbol, "(n + 255) / 256", block) for symbol in symbols or (name,)]
    phases = tuple(CudaPhase((launch,)) for launch in launches)
    return CudaSource(name, INCLUDE + body, interface, phases, **more)


def kernel(name: str, body: str, bounds: str = "256") -> str:
    """Text of a kernel function."""
    head = f'extern "C" __global__ void __launch_bounds__({bounds}) {name}{PARAMETERS}'
    return f"{head} {{\n{body}\n}}\n"


INDEX = "long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"

ELEMENTWISE = source("scale", kernel("scale", INDEX + "if (i < n) y[i] = x[i] * x[i] + 1.0f;"))
VECTOR = source(
    "vector",
    kernel(
        "vector",
        INDEX
        + """if (4 * i + 3 < n) {
          float4 v = ((const float4*)x)[i];
          ((float4*)y)[i] = make_float4(v.x + 1, v.y + 1, v.z + 1, v.w + 1);
        }""",
    ),
)
REDUCTION = source(
    "row_sum",
    kernel(
        "row_sum",
        """__shared__ float parts[8];
        float sum = 0;
        for (long long i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
        sum = tcf::team_sum(sum);
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
          for (int k = 1; k < 8; ++k) sum += parts[k];
          y[blockIdx.x] = sum;
        }""",
    ),
)
SPILLING = source(
    "spilling",
    kernel(
        "spilling",
        """float v[48];
        for (int k = 0; k < 48; ++k) v[k] = x[k * 1024 + threadIdx.x];
        for (int j = 0; j < 4; ++j) {
          float t = 0;
          for (int k = 0; k < 48; ++k) t += v[k] * v[(k + j) % 48];
          y[j * 1024 + threadIdx.x] = t;
        }
        for (int k = 0; k < 48; ++k) y[n + k * 1024 + threadIdx.x] = v[k];""",
        "1024, 2",
    ),
    block=1024,
)
TWO = source(
    "two",
    kernel("two_0", INDEX + "if (i < n) ((float*)scratch)[i] = x[i];")
    + kernel("two_1", INDEX + "if (i < n) y[i] = ((float*)scratch)[i];"),
    "two_0",
    "two_1",
)
CALLING = source(
    "calling",
    """static __noinline__ void copy(const float4* from, float4* to, int i) { to[i] = from[i]; }
    """
    + kernel("calling", "copy((const float4*)x, (float4*)y, threadIdx.x);"),
)
WRONG = source("wrong", kernel("wrong", "y[0] = missing;"))

ALL = (ELEMENTWISE, VECTOR, REDUCTION, SPILLING, TWO, CALLING)
