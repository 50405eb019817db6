"""What a GPU can do at most, measured: move bytes, and multiply matrices.

The copy is a kernel of our own, at several sizes: what fits into the L2 cache is faster than
memory, and a small copy is the time to start a kernel.  The rates of matrix products are those
of cuBLAS through PyTorch, where that is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scripts.gpu.contenders import Torch, measure
from scripts.gpu.outcome import Outcome
from scripts.gpu.workbench import Settings, Workbench
from tcfuse import gpu
from tcfuse.errors import DeviceError
from tcfuse.interface import Interface, Port
from tcfuse.targets.base import CudaPhase, CudaSource, Launch
from tcfuse.types import DType, TensorType

MEBIBYTES = (1, 4, 16, 64, 256, 1024)  # read and written together
DRY_MEBIBYTES = (0.0625,)
PRODUCTS = {"float32": False, "tf32": True, "float16": False, "bfloat16": False}
EDGE, DRY_EDGE = 8192, 64

COPY = CudaSource(
    "copy",
    """#include "tcf_device.hpp"

extern "C" __global__ void copy_rows(const float* x, float* y, char*, int32_t*, int64_t n) {
  struct alignas(16) Four { float v[4]; };
  const Four* from = reinterpret_cast<const Four*>(x);
  Four* to = reinterpret_cast<Four*>(y);
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n / 4; i += step)
    to[i] = from[i];
}
""",
    Interface(
        (Port("X", TensorType(DType.FLOAT32, ("N",))),),
        (Port("Y", TensorType(DType.FLOAT32, ("N",))),),
        ("N",),
        checks=(("N % 4 == 0", "N is no multiple of 4"),),
    ),
    (CudaPhase((Launch("copy_rows", "(N + 1023) / 1024", 256, "0", "1", 32),)),),
)


def names(settings: Settings) -> list[str]:
    """What is measured."""
    del settings
    return list(MEASURES)


def run(name: str, bench: Workbench) -> Outcome:
    """Measure a limit."""
    return MEASURES[name](bench)


def measure_copy(bench: Workbench) -> Outcome:
    """Bytes a second that a copy reads and writes together, by how many they are."""
    rates: dict[str, float] = {}
    kernel = bench.load(COPY)
    for size in DRY_MEBIBYTES if bench.settings.dry_run else MEBIBYTES:
        n_bytes = int(size * (1 << 20))
        x = np.arange(n_bytes // 8, dtype=np.float32)
        with gpu.Call(kernel, [x]) as call:
            times = measure(bench, {"copy": call.enqueue}, {"copy": call.enqueue})
            if not np.array_equal(call.read()[0], x):
                return {"status": "wrong", "why": f"a copy of {n_bytes} bytes is not equal"}
        rates[str(n_bytes)] = n_bytes / times["copy"]["graph"].median
    kernel.close()
    return {"status": "ok", "bytes_per_second": rates}


def measure_products(bench: Workbench) -> Outcome:
    """Operations a second of square matrix products by cuBLAS, by element type."""
    try:
        torch = Torch(bench.device)
    except DeviceError as missing:
        return {"status": "absent", "why": str(missing)}
    edge = DRY_EDGE if bench.settings.dry_run else EDGE
    rates = {}
    for name, tf32 in PRODUCTS.items():
        product = torch.product(name if name != "tf32" else "float32", edge, tf32=tf32)
        times = measure(bench, {name: product}, {name: torch.captured(product)})
        rates[name] = 2 * edge**3 / times[name]["graph"].median
    return {"status": "ok", "flops_per_second": rates}


MEASURES = {"copy": measure_copy, "products": measure_products}


def copy_rate(found: Mapping[str, Any], n_bytes: int) -> float | None:
    """Bytes a second of the measured copy that is nearest in size, of those not smaller.

    Args:
        found: The outcome of ``measure_copy``.
        n_bytes: What is moved.
    """
    rates: dict[int, float] = {
        int(size): rate for size, rate in found.get("bytes_per_second", {}).items()
    }
    if not rates:
        return None
    return rates[min((s for s in rates if s >= n_bytes), default=max(rates))]
