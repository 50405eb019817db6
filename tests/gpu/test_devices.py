"""Both ways to a GPU, against a libcuda without one."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tcfuse import gpu
from tcfuse.errors import DeviceError, OptionError
from tcfuse.targets.compilers import find_compiler, run
from tests import fake_libcuda
from tests.gpu.scenarios import KERNELS, SCENARIOS

pytestmark = pytest.mark.compiler
PYCUDA = importlib.util.find_spec("pycuda")
BACKENDS = [
    "driver",
    pytest.param(
        "pycuda", marks=pytest.mark.skipif(PYCUDA is None, reason="pycuda is not installed")
    ),
]


def pycuda_needs() -> set[str]:
    """The functions of libcuda that pycuda binds when it is imported."""
    assert PYCUDA is not None
    (module,) = Path(str(PYCUDA.origin)).parent.glob("_driver*.so")
    return fake_libcuda.entry_points(module)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("libcuda")


@pytest.fixture(scope="module")
def libcuda(folder: Path) -> Path:
    return fake_libcuda.build(folder, pycuda_needs() if PYCUDA else ())


@pytest.fixture(scope="module")
def kernels(folder: Path) -> Path:
    text, library = folder / "kernels.c", folder / "kernels.so"
    text.write_text(KERNELS)
    run((*find_compiler().argv, *fake_libcuda.FLAGS, str(text), "-o", str(library)))
    return library


def perform(
    backend: str, names: Sequence[str], libcuda: Path, kernels: Path, **variables: str
) -> dict[str, str]:
    """What went wrong in each of the scenarios, which run in one process of their own."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libcuda.parent), **variables}
    command = [sys.executable, "-m", "tests.gpu.scenarios", backend, str(libcuda), str(kernels)]
    done = subprocess.run([*command, *names], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def outcomes(libcuda: Path, kernels: Path) -> Callable[[str], dict[str, str]]:
    """Of the scenarios that share a process."""
    return functools.cache(lambda backend: perform(backend, [*SCENARIOS], libcuda, kernels))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(
    backend: str, scenario: str, outcomes: Callable[[str], dict[str, str]]
) -> None:
    assert not outcomes(backend)[scenario]


@pytest.mark.parametrize("backend", BACKENDS)
def test_kernel_that_fails(backend: str, libcuda: Path, kernels: Path) -> None:
    assert not perform(backend, ["failing_kernel"], libcuda, kernels)["failing_kernel"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_a_device(backend: str, libcuda: Path, kernels: Path) -> None:
    found = perform(backend, ["no_device"], libcuda, kernels, FAKE_LIBCUDA_DEVICES="0")
    assert not found["no_device"]


def test_launches_are_what_was_planned(libcuda: Path, kernels: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    perform("driver", ["outputs"], libcuda, kernels, FAKE_LIBCUDA_LOG=str(log))
    lines = [line.split(" stream")[0] for line in log.read_text().splitlines()]
    assert [line for line in lines if line.startswith("cuLaunchKernel")] == [
        "cuLaunchKernel twice grid 4,1,1 block 64,1,1 shared 0",
        "cuLaunchKernel add_one grid 200,1,1 block 32,1,1 shared 61440",
    ]
    first, last = (k for k, line in enumerate(lines) if line.startswith("cuLaunchKernel"))
    assert last == first + 1, "nothing waits or allocates between the steps"


def test_without_a_driver(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="there is no NVIDIA driver"):
        gpu.device(library=tmp_path / "libcuda.so.1")


@pytest.mark.parametrize("function", ["cuInit", "cuStreamCreate", "cuMemAlloc_v2"])
def test_errors_name_the_call(function: str, libcuda: Path, kernels: Path) -> None:
    found = perform("driver", ["outputs"], libcuda, kernels, FAKE_LIBCUDA_FAIL=function)
    assert f"DeviceError: {function}: unknown error" in found["outputs"]


def test_unknown_backends_are_refused() -> None:
    with pytest.raises(OptionError, match="there are driver, pycuda"):
        gpu.device(backend="hip")
