"""What a device must do, for every backend.

``python -m tests.gpu.scenarios BACKEND LIBCUDA KERNELS SCENARIO...``, with the fake libcuda's
folder in ``LD_LIBRARY_PATH``, prints what went wrong in each scenario as JSON.  The kernels are
C that stands for what an emulator would make.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tcfuse import gpu
from tcfuse.errors import DeviceError, InputError
from tcfuse.gpu.kernel import OUT_OF_RANGE
from tcfuse.targets.base import CudaPhase, CudaSource, Interface, Launch, Port
from tcfuse.types import DType, TensorType
from tests.fake_libcuda import emulated_image

KERNELS = """
#define KERNEL(name) __attribute__((visibility("default"))) int tcf_emulate_##name( \\
    unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \\
    unsigned shared, void **a)
#define POINTER(k) (*(float **)a[k])

/* X, Y, scratch, fault, N */
KERNEL(twice) {
  for (long i = 0; i < *(long *)a[4]; i++) POINTER(2)[i] = 2 * POINTER(0)[i];
  return gx == 4 && bx == 64 && shared == 0 ? 0 : 1;
}
KERNEL(add_one) {
  for (long i = 0; i < *(long *)a[4]; i++) {
    POINTER(1)[i] = POINTER(2)[i] + 1;
    if (POINTER(0)[i] < 0) *(int *)POINTER(3) = 1;
  }
  return 0;
}
KERNEL(failing) { return 1; }
"""


def port(name: str) -> Port:
    return Port(name, TensorType(DType.FLOAT32, ("N",)))


INTERFACE = Interface((port("X"),), (port("Y"),), ("N",))
N_PARAMETERS = 5
X = np.arange(200, dtype=np.float32)


def source_of(*launches: Launch) -> CudaSource:
    return CudaSource("k", "", INTERFACE, tuple(CudaPhase((x,)) for x in launches), "4 * N")


SOURCE = source_of(
    Launch("twice", "(N + 63) / 64", 64), Launch("add_one", "N", 32, "60 * 1024")
)


@dataclass(frozen=True)
class Image:
    """The kernels' library as the fake takes it."""

    data: bytes
    arch: str = "sm_90"
    kind: str = "cubin"


@dataclass(frozen=True)
class Setting:
    """What a scenario gets."""

    backend: str
    libcuda: Path
    image: Image

    def open(self) -> gpu.Device:
        library = self.libcuda if self.backend == "driver" else None
        return gpu.device(backend=self.backend, library=library)

    def live(self) -> int:
        """Objects of the driver that exist."""
        return int(ctypes.CDLL(str(self.libcuda)).fake_live())


def refused(text: str, call: Callable[[], object], kind: type = DeviceError) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


def facts(setting: Setting) -> None:
    found = setting.open().facts
    assert found == gpu.Facts("fake sm_90", "sm_90", 132, 232448, 16 << 30, 50 << 20, "13.0")


def outputs(setting: Setting) -> None:
    device = setting.open()
    (y,) = gpu.run(SOURCE, [setting.image], [X], device)
    np.testing.assert_array_equal(y, 2 * X + 1)


def leaks(setting: Setting) -> None:
    device = setting.open()
    gpu.run(SOURCE, [setting.image], [X], device)
    before = setting.live()
    gpu.run(SOURCE, [setting.image], [X], device)
    kernel = gpu.LoadedKernel(device, SOURCE, [setting.image])
    with gpu.Call(kernel, [X]) as call:
        gpu.interleave({"once": gpu.launched(device, call.enqueue)}, 2, 1e-4)
        with gpu.captured(device, call.enqueue) as block:
            block(30)
    refused("out of range", lambda: gpu.run(SOURCE, [setting.image], [-X], device), InputError)
    kernel.close()
    del kernel, call
    assert setting.live() == before
    device.close()
    assert setting.live() < before


def graphs(setting: Setting) -> None:
    device = setting.open()
    with gpu.Call(gpu.LoadedKernel(device, SOURCE, [setting.image]), [X]) as call:
        graph = device.capture(call.enqueue)
        before = call.read()[0].copy()
        assert not np.array_equal(before, 2 * X + 1)
        device.replay(graph)
        np.testing.assert_array_equal(call.read()[0], 2 * X + 1)
        device.drop(graph)
        times = {"launched": gpu.launched(device, call.enqueue)}
        with gpu.captured(device, call.enqueue, 3) as times["graph"]:
            found = gpu.interleave(times, 5, 1e-4)
    for measured in found.values():
        assert len(measured.rounds) == 5
        assert 0 < measured.median < 1


def forbidden_in_graphs(setting: Setting) -> None:
    device = setting.open()
    refused("capturing", lambda: device.capture(lambda: device.free(device.allocate(8))))
    device.synchronize()
    device.drop(device.capture(lambda: None))


def fault(setting: Setting) -> None:
    device = setting.open()
    refused(OUT_OF_RANGE, lambda: gpu.run(SOURCE, [setting.image], [-X], device), InputError)


def wrong_inputs(setting: Setting) -> None:
    device = setting.open()

    def run(*inputs: np.ndarray) -> list[np.ndarray]:
        return gpu.run(SOURCE, [setting.image], inputs, device)

    refused("has 1 inputs, but 2", lambda: run(X, X), InputError)
    refused("elements of int32, not float", lambda: run(X.astype(np.int32)), InputError)


def empty(setting: Setting) -> None:
    device = setting.open()
    (y,) = gpu.run(source_of(Launch("twice", "N", 64)), [setting.image], [X[:0]], device)
    assert y.shape == (0,)


def failing_kernel(setting: Setting) -> None:
    device = setting.open()
    source = source_of(Launch("failing", "1", 32))
    refused("launch failure", lambda: gpu.run(source, [setting.image], [X], device))
    refused("launch failure", device.synchronize)


def missing_kernel(setting: Setting) -> None:
    device = setting.open()
    source = source_of(Launch("absent", "1", 32))
    refused("not found", lambda: gpu.run(source, [setting.image], [X], device))


def bad_images(setting: Setting) -> None:
    device = setting.open()
    refused("no image for sm_90", lambda: gpu.run(SOURCE, [Image(b"", "sm_80")], [X], device))
    refused("invalid", lambda: gpu.run(SOURCE, [Image(b"not a cubin" * 9)], [X], device))
    elf = bytearray(64)
    elf[:4], elf[18], elf[49] = b"\x7fELF", 190, 80
    refused("no kernel image", lambda: gpu.run(SOURCE, [Image(bytes(elf))], [X], device))


def refused_launches(setting: Setting) -> None:
    device = setting.open()
    for launch in (Launch("twice", "1", 2048), Launch("twice", "1", 64, "300000")):
        source = source_of(launch)
        refused("invalid", lambda s=source: gpu.run(s, [setting.image], [X], device))


def no_device(setting: Setting) -> None:
    refused("no CUDA-capable device" if setting.backend == "driver" else "cuInit", setting.open)


SCENARIOS: dict[str, Callable[[Setting], None]] = {
    scenario.__name__: scenario
    for scenario in (
        *(facts, outputs, leaks, graphs, forbidden_in_graphs, fault, wrong_inputs, empty),
        *(missing_kernel, bad_images, refused_launches),
    )
}
ALONE: dict[str, Callable[[Setting], None]] = {
    "failing_kernel": failing_kernel,  # the context is lost
    "no_device": no_device,
}


def outcome(scenario: Callable[[Setting], None], setting: Setting) -> str:
    """The traceback of a scenario that fails."""
    try:
        scenario(setting)
    except BaseException:
        return traceback.format_exc()
    return ""


def main(backend: str, libcuda: str, kernels: str, *names: str) -> None:
    image = Image(emulated_image(Path(kernels), N_PARAMETERS))
    setting = Setting(backend, Path(libcuda), image)
    json.dump({n: outcome((SCENARIOS | ALONE)[n], setting) for n in names}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
