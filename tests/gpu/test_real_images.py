"""Images as NVRTC makes them, loaded and launched: the emulator computes what a GPU would."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tcfuse import gpu
from tcfuse.codegen.device import device_header
from tcfuse.debug import cache_dir
from tcfuse.emulator.build import Build, library
from tcfuse.errors import DeviceError
from tcfuse.targets.base import CudaPhase, CudaSource, Interface, Launch, Port
from tcfuse.targets.nvrtc import CudaImages, Image, compile_cuda
from tcfuse.types import DType, TensorType
from tests import fake_libcuda

pytestmark = [pytest.mark.compiler, pytest.mark.cuda_build]

TEXT = """#include "tcf_device.hpp"

extern "C" __global__ void real_image_sums(const float* x, float* y, char*, int32_t*,
                                           int64_t n) {
  __shared__ float part[64];
  float sum = 0;
  for (int64_t i = blockIdx.x * 64 + threadIdx.x; i < n; i += 64 * gridDim.x) sum += x[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < 64; k++) sum += part[k];
    y[blockIdx.x] = sum;
  }
}
"""
SOURCE = CudaSource(
    "real_image",
    TEXT,
    Interface(
        (Port("X", TensorType(DType.FLOAT32, ("N",))),),
        (Port("Y", TensorType(DType.FLOAT32, (2,))),),
        ("N",),
    ),
    (CudaPhase((Launch("real_image_sums", "2", 64),)),),
)
X = np.arange(1000, dtype=np.float32)
SUMS = [sum(i for i in range(1000) if i // 64 % 2 == block) for block in (0, 1)]


@pytest.fixture(scope="module")
def images() -> CudaImages:
    return compile_cuda(SOURCE, ["sm_80", "sm_90"], header=device_header())


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "real_image.so"
    build = Build.of(TEXT, ["real_image_sums"], traced=False, contract=True)
    path.write_bytes(library(build))
    return path


@pytest.fixture
def opened(kernels: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that opens a device of some architecture."""
    devices: list[gpu.Device] = []

    def opening(arch: int) -> gpu.Device:
        monkeypatch.setenv("FAKE_LIBCUDA_ARCH", str(arch))
        monkeypatch.setenv("FAKE_LIBCUDA_EMULATORS", str(kernels))
        devices.append(gpu.device(library=fake_libcuda.build(cache_dir())))
        return devices[-1]

    yield opening
    for device in devices:
        device.close()


@pytest.mark.parametrize("arch", [80, 86, 90, 103, 120])
def test_every_device_finds_what_it_runs(images: CudaImages, opened, arch: int) -> None:
    (y,) = gpu.run(SOURCE, images.images, [X], opened(arch))
    np.testing.assert_array_equal(y, SUMS)


def test_an_older_device_is_told(images: CudaImages, opened) -> None:
    with pytest.raises(DeviceError, match="no image for sm_75"):
        gpu.run(SOURCE, images.images, [X], opened(75))


@pytest.mark.parametrize(("made_for", "arch"), [("sm_80", 90), ("sm_90", 80)])
def test_the_driver_refuses_the_code_of_others(
    images: CudaImages, opened, made_for: str, arch: int
) -> None:
    (image,) = (i for i in images.images if i.arch == made_for and i.kind == "cubin")
    with pytest.raises(DeviceError, match="no kernel image is available"):
        opened(arch).load(image.data)


def test_the_page_about_gpus_works(
    kernels: Path, opened, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """With an image that tells the number of parameters: without it nothing is captured."""
    n_parameters = 5  # X, Y, scratch, fault, N
    image = Image("sm_90", "cubin", fake_libcuda.emulated_image(kernels, n_parameters))
    page = Path(__file__).resolve().parents[2] / "docs" / "gpu.md"
    (block,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    device = opened(90)
    monkeypatch.setattr(gpu, "device", lambda: device)
    names = {"source": SOURCE, "images": [image], "x": X}
    exec(block, names)
    np.testing.assert_array_equal(names["outputs"][0], SUMS)
    assert capsys.readouterr().out.endswith(" seconds\n")
