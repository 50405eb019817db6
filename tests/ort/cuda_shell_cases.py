"""The operator shell for GPUs: registration, modules, launches; against a fake of each side.

Kernels are called by the fake libcuda, so answers show that every argument is in its place; its
log shows the launches, which must be those that ``targets.geometry`` plans.  Collected by
``test_cuda_shell.py``, or by its path.
"""

from __future__ import annotations

import ctypes
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tcfuse.cuda_options import CudaOptions
from tcfuse.debug import cache_dir
from tcfuse.emulator import Program
from tcfuse.mapping_options import MappingOptions
from tcfuse.ort.library import build_library, image_data, shell_unit, shell_units
from tcfuse.ort.operators import CudaKernel, Operator
from tcfuse.targets.base import CudaPhase, CudaSource, Interface, KernelSource, Launch, Port
from tcfuse.targets.compilers import levels
from tcfuse.targets.cuda import compile_kernel
from tcfuse.targets.geometry import Step, plan
from tcfuse.targets.nvrtc import Image
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.parser import parse_file
from tcfuse.tc.sema import check
from tcfuse.types import DType, Size, TensorType
from tests import fake_libcuda
from tests.ort import fake_ort
from tests.ort.fake_ort import Node, OrtError, Session
from tests.ort.test_library import CENTER as CENTER_GRAPH
from tests.ort.test_library import TAKE as TAKE_GRAPH
from tests.ort.test_library import center as center_cpu
from tests.ort.test_library import model

pytestmark = pytest.mark.compiler

BOTH = ("CUDAExecutionProvider", "CudaPluginExecutionProvider")
SHARED_LIMIT = 232448  # of the fake device
MULTIPROCESSORS = 132


def port(name: str, *shape: Size, dtype: DType = DType.FLOAT32) -> Port:
    return Port(name, TensorType(dtype, shape))


CENTER = CudaSource(
    "center",
    "",
    center_cpu().interface,
    (
        CudaPhase(
            (
                Launch("center_mean_shared", "n1", 128, "8 * n0", "8 * n0 <= tcf_shared_limit"),
                Launch("center_mean", "(n1 + 127) / 128", 128),
            )
        ),
        CudaPhase(
            (
                Launch(
                    "center_vectors",
                    "(n0 * n1 / 4 + 255) / 256",
                    256,
                    when="tcf_alignment >= 16 && n1 % 4 == 0",
                    blocks_per_multiprocessor=2,
                ),
                Launch("center_elements", "(n0 * n1 + 255) / 256", 256),
            )
        ),
    ),
    "8 * n1",
)
TAKE = CudaSource(
    "take",
    "",
    Interface(
        (port("table", "n0", "n1"), port("index", "n2", dtype=DType.INT64)),
        (port("y", "n2", "n1"),),
        ("n0", "n1", "n2"),
    ),
    (CudaPhase((Launch("take_rows", "n2", 64),)),),
)


@dataclass(frozen=True)
class Fakes:
    """Both sides of the shell, and kernels for it."""

    ort: ctypes.CDLL
    cuda: ctypes.CDLL
    kernels: Path
    toolchain: Toolchain
    log: Path
    libraries: dict[tuple[Operator | KernelSource, ...], Path]

    def image(
        self, arch: str = "sm_90", kind: str = "cubin", source: CudaSource | None = None
    ) -> Image:
        interface = (source or CENTER).interface
        n_arguments = len(interface.inputs) + len(interface.outputs) + len(interface.sizes) + 2
        data = fake_libcuda.emulated_image(self.kernels, n_arguments)
        return Image(arch, kind, data)  # type: ignore[arg-type]

    def lines(self, function: str) -> list[str]:
        """What the calls of a driver's function were given."""
        if not self.log.exists():
            return []
        calls = (line.partition(" ") for line in self.log.read_text().splitlines())
        return [given for name, _, given in calls if name == function]

    def steps(self) -> list[Step]:
        """The launches so far."""
        pattern = r"(\w+) grid (\d+),1,1 block (\d+),1,1 shared (\d+)"
        found = (re.match(pattern, line) for line in self.lines("cuLaunchKernel"))
        return [Step(m[1], int(m[2]), int(m[3]), int(m[4])) for m in found if m]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Fakes:
    folder = tmp_path_factory.mktemp("fakes")
    toolchain = Toolchain.default(cache_dir())
    text = (Path(__file__).parent / "cuda_kernels.c").read_text()
    kernels = folder / "kernels.so"
    toolchain.link(toolchain.compile([shell_unit("cuda_kernels.c", text)]), kernels)
    library = fake_libcuda.build(folder)
    cuda = ctypes.CDLL(str(library))  # what dlopen("libcuda.so.1") gets from now on
    ort = fake_ort.build(folder, toolchain)
    return Fakes(ort, cuda, kernels, toolchain, folder / "log", {})


@pytest.fixture
def fakes(built: Fakes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fakes]:
    """With an empty log, and a check that nothing is left behind."""
    built.log.unlink(missing_ok=True)
    monkeypatch.setenv("FAKE_LIBCUDA_LOG", str(built.log))
    monkeypatch.setenv("FAKE_LIBCUDA_DEVICES", "1")
    before = built.cuda.fake_live(), built.ort.fake_live_objects()
    yield built
    assert (built.cuda.fake_live(), built.ort.fake_live_objects()) == before


Open = Callable[..., Session]


@pytest.fixture
def opened(fakes: Fakes, tmp_path: Path) -> Open:
    """Opens operators in a library that remembers no other session."""

    def call(*operators: Operator | KernelSource, minor: int = 32, entry=None) -> Session:
        built = fakes.libraries.get(operators)
        if built is None:
            built = fakes.kernels.with_name(f"{len(fakes.libraries)}.so")
            build_library(operators, built, fakes.toolchain, built=levels()[:1])
            fakes.libraries[operators] = built
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.so"
        shutil.copy(built, path)
        return Session(fakes.ort, path, minor, entry)

    return call


@pytest.fixture
def operator(fakes: Fakes) -> Callable[..., Operator]:
    """An operator for GPUs, with the CPU's kernel too if there is one."""

    def call(source: CudaSource = CENTER, *images: Image, **more: object) -> Operator:
        cpu = center_cpu() if source.name == "center" else None
        kernel = CudaKernel(source, images or (fakes.image(source=source),))
        return Operator(cpu, kernel, **more)  # type: ignore[arg-type]

    return call


def aligned(*shape: int, offset: int = 0, dtype: type = np.float32) -> np.ndarray:
    """Random values at an address that is a multiple of 256, plus ``offset``."""
    count = int(np.prod(shape))
    memory = np.zeros(count * np.dtype(dtype).itemsize + 512, np.uint8)
    start = -memory.ctypes.data % 256 + offset
    found = memory[start:].view(np.uint8)[: count * np.dtype(dtype).itemsize].view(dtype)
    found[:] = np.random.default_rng(0).standard_normal(count) * 9
    return found.reshape(shape)


def expected_steps(
    source: CudaSource, shapes: Sequence[Sequence[int]], **more: int
) -> list[Step]:
    limits = {"shared_limit": SHARED_LIMIT, "multiprocessors": MULTIPROCESSORS}
    return list(plan(source, shapes, **limits, **more).steps)


# ------------------------------------------------------------------------------- registration


def names(session: Session) -> set[tuple[str, str]]:
    return set(session.operators())


def test_both_providers_and_the_cpu_are_served(opened: Open, operator) -> None:
    found = opened(operator(), operator(TAKE)).operators()
    assert sorted(found) == sorted(
        [("center", ""), *(("center", p) for p in BOTH), *(("take", p) for p in BOTH)]
    )


@pytest.mark.parametrize(
    "variables",
    [
        {"FAKE_LIBCUDA_DEVICES": "0"},
        {"FAKE_LIBCUDA_FAIL": "cuInit"},
        {"FAKE_LIBCUDA_FAIL": "cuDeviceGetCount"},
        {"FAKE_LIBCUDA_ARCH": "75"},  # the library has code for sm_90 alone
        {"FAKE_LIBCUDA_ARCH": "100"},
    ],
)
def test_without_a_gpu_that_can_run_it_only_the_cpu_is_served(
    opened: Open, operator, monkeypatch: pytest.MonkeyPatch, variables
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert names(opened(operator(), operator(TAKE))) == {("center", "")}


def test_a_session_can_do_without_gpus(fakes: Fakes, opened: Open, operator) -> None:
    assert names(opened(operator(), entry=("tcfuse.cuda", "0"))) == {("center", "")}
    assert not fakes.lines("cuInit")  # the driver is not even asked


def test_a_kernel_on_standby_needs_a_gpu(
    opened: Open, operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ("center", "") in names(opened(operator(standby=True)))
    monkeypatch.setenv("FAKE_LIBCUDA_DEVICES", "0")
    assert not names(opened(operator(standby=True)))


def test_a_region_for_the_cpu_alone_is_served_where_there_is_no_gpu(
    opened: Open, operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU, ONNX Runtime's own operators beat a kernel that needs copies to and fro."""
    assert names(opened(center_cpu(), operator(TAKE))) == {("take", p) for p in BOTH}
    monkeypatch.setenv("FAKE_LIBCUDA_DEVICES", "0")
    assert names(opened(center_cpu(), operator(TAKE))) == {("center", "")}


def test_a_library_for_the_cpu_asks_for_no_driver(fakes: Fakes, opened: Open) -> None:
    assert names(opened(center_cpu())) == {("center", "")}
    assert not fakes.lines("cuInit")


# ------------------------------------------------------------------------------------ launches


@pytest.mark.parametrize(
    ("shape", "offset"),
    [
        ((5, 8), 0),  # vectors
        ((5, 7), 0),  # rows of another length
        ((5, 8), 4),  # tensors at other addresses
        ((5, 8), 16),
        ((30000, 4), 0),  # more shared memory than a block may have
        ((2000, 200), 0),  # more blocks than two for each multiprocessor
        ((1, 1), 0),
    ],
)
def test_launches_are_the_planned_ones(
    fakes: Fakes, opened: Open, operator, shape, offset
) -> None:
    node = opened(operator()).node("center")
    x, y = aligned(*shape, offset=offset), aligned(*shape, offset=offset)
    assert node.run([x], [y]) == [shape]
    mean = x.mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(y, x - mean, rtol=1e-5, atol=1e-5)
    alignment = offset & -offset or 256
    assert fakes.steps() == expected_steps(CENTER, [shape], alignment=alignment)
    node.release()


def test_launches_go_to_the_stream_of_the_run(fakes: Fakes, opened: Open, operator) -> None:
    node = opened(operator(TAKE)).node("take", BOTH[1])
    stream = ctypes.c_void_p()
    fakes.cuda.cuStreamCreate(ctypes.byref(stream), 1)
    table, index, y = aligned(6, 3), np.array([5, 0, 3, 3]), aligned(4, 3)
    node.run([table, index], [y], stream.value or 0)
    np.testing.assert_array_equal(y, table[index])
    assert [line.split()[-1] for line in fakes.lines("cuLaunchKernel")] == [
        f"{stream.value:#x}"
    ]
    fakes.cuda.cuStreamDestroy_v2(stream)
    node.release()


def test_a_run_can_be_captured(fakes: Fakes, opened: Open, operator) -> None:
    """The fake refuses whatever must not be called in a capture, as the driver does."""
    node = opened(operator()).node("center")
    stream, graph, run = (ctypes.c_void_p() for _ in range(3))
    fakes.cuda.cuStreamCreate(ctypes.byref(stream), 1)
    x, y = aligned(5, 8), np.zeros((5, 8), np.float32)
    assert fakes.cuda.cuStreamBeginCapture_v2(stream, 0) == 0
    node.run([x], [y], stream.value or 0)
    kept = node.context  # the scratch of the captured run
    assert fakes.cuda.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
    assert not y.any()
    assert kept.live == 0
    fakes.cuda.cuGraphDestroy(graph)
    fakes.cuda.cuStreamDestroy_v2(stream)
    del run
    node.release()


def test_empty_outputs_launch_nothing(fakes: Fakes, opened: Open, operator) -> None:
    session = opened(operator(), operator(TAKE))
    center, take = session.node("center"), session.node("take")
    assert center.run([aligned(0, 8)], [aligned(0, 8)]) == [(0, 8)]
    assert take.run([aligned(6, 3), np.zeros(0, np.int64)], [aligned(0, 3)]) == [(0, 3)]
    assert not fakes.steps()
    center.release()
    take.release()


def test_shapes_are_checked(opened: Open, operator) -> None:
    node = opened(operator(TAKE)).node("take")
    with pytest.raises(OrtError, match="tcfuse: take: input 1 has rank 2; the model says 1"):
        node.run([aligned(6, 3), np.zeros((1, 1), np.int64)], [aligned(1, 3)])
    node.release()


def test_a_launch_that_fails_says_which(
    opened: Open, operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = opened(operator()).node("center")
    monkeypatch.setenv("FAKE_LIBCUDA_FAIL", "cuLaunchKernel")
    text = r"tcfuse: center: center_mean_shared on device 0 \(sm_90\): CUDA_ERROR_UNKNOWN"
    with pytest.raises(OrtError, match=text):
        node.run([aligned(5, 8)], [aligned(5, 8)])
    assert node.context.live == 0
    monkeypatch.delenv("FAKE_LIBCUDA_FAIL")
    node.release()


@pytest.mark.parametrize("minor", [17, 32])
def test_scratch_is_the_sessions_and_given_back(opened: Open, operator, minor) -> None:
    session = opened(operator(), operator(TAKE), minor=minor)
    center, take = session.node("center"), session.node("take")
    x, y = aligned(5, 8), aligned(5, 8)
    center.run([x], [y])
    np.testing.assert_allclose(y, x - x.mean(axis=0, dtype=np.float64), rtol=1e-5, atol=1e-5)
    assert (center.context.scratch_bytes, center.context.live) == (8 * 8, 0)
    assert center.context.asked_by_stream == (minor >= 18)
    take.run([aligned(6, 3), np.array([1])], [aligned(1, 3)])
    assert take.context.scratch_bytes == 0
    center.release()
    take.release()


def test_a_fault_is_told_by_the_next_run(opened: Open, operator) -> None:
    session = opened(operator(TAKE))
    node, other = session.node("take"), session.node("take")
    table, y = aligned(6, 3), aligned(2, 3)
    node.run([table, np.array([1, 6])], [y])
    other.run([table, np.array([1, 5])], [y])
    other.run([table, np.array([1, 5])], [y])
    text = "tcfuse: take: an index was out of range in an earlier run, whose results are wrong"
    with pytest.raises(OrtError, match=text):
        node.run([table, np.array([1, 5])], [y])
    node.run([table, np.array([1, 5])], [y])
    np.testing.assert_array_equal(y, table[[1, 5]])
    node.release()
    other.release()


# -------------------------------------------------------------------------- compiled kernels

COMPILED = """
def softmax(float(N, M) X) -> (Y) {
  T(i) max=! X(i, j)
  E(i, j) = exp(X(i, j) - T(i))
  S(i) +=! E(i, j)
  Y(i, j) = E(i, j) / S(i)
}
def column_sums(float(N, M) X) -> (Y) {
  Y(j) +=! X(i, j)
}
"""


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def compiled(built: Fakes) -> dict[str, Operator]:
    """What the CUDA target makes of definitions, as the emulator runs it."""
    found = {}
    for definition in parse_file(COMPILED, "compiled.tc"):
        form = kernel_form(check(definition, affine=False))
        ready = check(form.definition, sizes=form.interface.sizes)
        options = MappingOptions(), CudaOptions()
        source = compile_kernel(ready, form.interface, definition.name, *options).source
        symbols = [launch.symbol for launch in source.launches]
        program = Program.build(source.text, symbols, trace=False, toolchain=built.toolchain)
        path = built.kernels.with_name(f"{definition.name}.so")
        path.write_bytes(program.library)
        image = replace(built, kernels=path).image(source=source)
        found[definition.name] = Operator(None, CudaKernel(source, (image,)))
    return found


@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("shape", [(5, 8), (3, 7), (2, 1000), (2, 9000), (9000, 3), (1, 1)])
def test_compiled_kernels_run_as_they_were_planned(
    fakes: Fakes, opened: Open, compiled: dict[str, Operator], shape, offset
) -> None:
    session = opened(*compiled.values())
    for name, reference, made in (
        ("softmax", softmax, shape),
        ("column_sums", lambda x: x.sum(axis=0), shape[1:]),
    ):
        operator = compiled[name]
        node = session.node(operator.name)
        x, y = aligned(*shape, offset=offset), aligned(*made, offset=offset)
        fakes.log.unlink(missing_ok=True)
        assert node.run([x], [y]) == [made]
        np.testing.assert_allclose(y, reference(x.astype(np.float64)), rtol=1e-4, atol=1e-3)
        assert operator.cuda is not None
        planned = expected_steps(operator.cuda.source, [shape], alignment=offset or 256)
        assert fakes.steps() == planned
        node.release()


# ------------------------------------------------------------------------------------- modules

WRONG = b"\x7fELF nothing that runs" + bytes(64)


@pytest.mark.parametrize(
    ("device", "best", "others"),
    [
        (86, "sm_86 cubin", ["sm_80 cubin", "sm_89 cubin", "sm_90 cubin", "sm_90 ptx"]),
        (87, "sm_86 cubin", ["sm_80 cubin", "sm_89 cubin", "sm_80 ptx"]),
        (90, "sm_90a cubin", ["sm_90 cubin", "sm_90 ptx"]),
        (103, "sm_100f cubin", ["sm_100a cubin", "sm_90 cubin", "sm_100 ptx"]),
        (120, "sm_90 ptx", ["sm_80 ptx", "sm_90 cubin", "sm_90a ptx", "sm_121 ptx"]),
    ],
)
def test_the_best_code_is_loaded(
    fakes: Fakes, opened: Open, operator, monkeypatch: pytest.MonkeyPatch, device, best, others
) -> None:
    monkeypatch.setenv("FAKE_LIBCUDA_ARCH", str(device))
    wrong = [Image(*name.split(), WRONG + name.encode()) for name in others]
    right = fakes.image(*best.split())
    for images in ((right, *wrong), (*wrong, right)):
        opened(operator(CENTER, *images)).node("center").release()


def test_ptx_is_named_once_with_what_is_missing(
    fakes: Fakes, opened: Open, operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LIBCUDA_ARCH", "103")
    images = fakes.image("sm_80"), fakes.image("sm_90"), fakes.image("sm_90", "ptx")
    session = opened(operator(CENTER, *images), operator(TAKE, *images))
    before, _ = session.logged()
    for name in ("center", "take", "center"):
        session.node(name).release()
    n, text = session.logged()
    assert n == before + 1
    assert "no code for sm_103, so the driver compiles its PTX for compute_90" in text
    assert "optimize with --cuda-arch sm_103" in text
    assert "(center has sm_80, sm_90, PTX of compute_90)" in text


@pytest.mark.parametrize(
    ("failing", "doing"),
    [
        ("cuModuleLoadData", "loading code for sm_90"),
        ("cuModuleGetFunction", "center_mean_shared"),
        ("cuFuncSetAttribute", "center_mean_shared"),
        ("cuDevicePrimaryCtxRetain", "no context"),
        ("cuMemHostAlloc", "pinned memory"),
    ],
)
def test_what_the_driver_refuses_is_an_error(
    opened: Open, operator, monkeypatch: pytest.MonkeyPatch, failing, doing
) -> None:
    session = opened(operator())
    monkeypatch.setenv("FAKE_LIBCUDA_FAIL", failing)
    text = rf"tcfuse: center: {doing} on device 0 \(sm_90\): CUDA_ERROR_UNKNOWN: "
    with pytest.raises(OrtError, match=text):
        session.node("center")
    monkeypatch.delenv("FAKE_LIBCUDA_FAIL")
    session.node("center").release()


def test_ptx_serves_where_the_driver_is_too_old_for_the_code(
    fakes: Fakes, opened: Open, operator
) -> None:
    refused = Image("sm_90", "cubin", b"\x7fELF" + bytes(60))
    session = opened(operator(CENTER, refused, fakes.image("sm_80", "ptx")))
    before, _ = session.logged()
    node = session.node("center")
    x, y = aligned(5, 8), aligned(5, 8)
    node.run([x], [y])
    np.testing.assert_allclose(y, x - x.mean(axis=0), rtol=1e-5, atol=1e-5)
    node.release()
    n, text = session.logged()
    assert n == before + 1
    assert "refuses code for sm_90 and compiles PTX for compute_80" in text
    alone = opened(operator(CENTER, refused))
    with pytest.raises(OrtError, match="loading code for sm_90"):
        alone.node("center")


def test_nodes_share_the_code_of_a_device(
    fakes: Fakes, opened: Open, operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LIBCUDA_DEVICES", "2")
    session = opened(operator())
    nodes: list[Node] = [session.node("center", device=d) for d in (0, 0, 1, 0)]
    assert len(fakes.lines("cuModuleLoadData")) == 2
    nodes.pop(0).release()
    x, y = aligned(5, 8), aligned(5, 8)
    for node in nodes:
        node.run([x], [y])
        node.release()
    assert len(fakes.lines("cuModuleUnload")) == 2
    session.node("center").release()
    assert len(fakes.lines("cuModuleLoadData")) == 3


def test_the_driver_is_called_in_the_context_of_the_device(
    fakes: Fakes, opened: Open, operator
) -> None:
    """Threads that create, run and end sessions need not have one."""
    node = opened(operator()).node("center")
    node.run([aligned(5, 8)], [aligned(5, 8)])
    node.release()
    needs = {"cuModuleLoadData", "cuModuleUnload", "cuMemHostAlloc", "cuMemFreeHost"}
    needs |= {"cuModuleGetFunction", "cuFuncSetAttribute", "cuLaunchKernel"}
    depth, seen = 0, set()
    for line in fakes.log.read_text().splitlines():
        name = line.partition(" ")[0]
        depth += {"cuCtxPushCurrent_v2": 1, "cuCtxPopCurrent_v2": -1}.get(name, 0)
        if name in needs:
            assert depth == 1, name
            seen.add(name)
    assert (seen, depth) == (needs, 0)


def test_a_run_in_that_context_changes_no_context(fakes: Fakes, opened: Open, operator) -> None:
    node = opened(operator()).node("center")
    context = ctypes.c_void_p()
    fakes.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    fakes.cuda.cuCtxPushCurrent_v2(context)
    pushed = len(fakes.lines("cuCtxPushCurrent_v2"))
    node.run([aligned(5, 8)], [aligned(5, 8)])
    assert len(fakes.lines("cuCtxPushCurrent_v2")) == pushed
    fakes.cuda.cuCtxPopCurrent_v2(None)
    fakes.cuda.cuDevicePrimaryCtxRelease_v2(0)
    node.release()


def test_builds_with_code_for_gpus_are_reproducible(
    fakes: Fakes, operator, tmp_path: Path
) -> None:
    uncached = Toolchain(fakes.toolchain.compiler)
    paths = [tmp_path / name for name in ("a.so", "b.so")]
    for path, toolchain in zip(paths, (fakes.toolchain, uncached), strict=True):
        build_library([operator()], path, toolchain, built=levels()[:1])
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert first.count(b"tcf_images") == 0  # hidden, and stripped


# ------------------------------------------------------------------------ inside ONNX Runtime


def open_real(path: Path, graph: str, **entries: str) -> object:
    """A session of ONNX Runtime on the CPU."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 2
    for key, value in entries.items():
        options.add_session_config_entry(f"tcfuse.{key}", value)
    options.register_custom_ops_library(str(path))
    return ort.InferenceSession(model(graph), options, providers=["CPUExecutionProvider"])


@pytest.mark.ort
@pytest.mark.parametrize("devices", ["0", "1"])
def test_a_library_for_both_runs_on_the_cpu(
    fakes: Fakes, operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices
) -> None:
    monkeypatch.setenv("FAKE_LIBCUDA_DEVICES", devices)
    build_library([operator(), operator(TAKE)], tmp_path / "both.so", fakes.toolchain)
    session = open_real(tmp_path / "both.so", CENTER_GRAPH)
    x = aligned(5, 8)
    (y,) = session.run(None, {"x": x})
    np.testing.assert_allclose(y, x - x.mean(axis=0, dtype=np.float64), rtol=1e-5, atol=1e-5)
    assert not fakes.steps()


@pytest.mark.ort
def test_a_library_for_gpus_alone_leaves_sessions_on_the_cpu_their_operators(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is a GPU, such a session must say that it does without."""
    alone = Operator(None, CudaKernel(CENTER, (fakes.image(),)))
    build_library([alone], tmp_path / "alone.so", fakes.toolchain)
    shutil.copy(tmp_path / "alone.so", tmp_path / "again.so")
    x = aligned(5, 8)
    (y,) = open_real(tmp_path / "alone.so", CENTER_GRAPH, cuda="0").run(None, {"x": x})
    np.testing.assert_array_equal(y, -x)  # what the model's function computes
    with pytest.raises(Exception, match="center"):
        open_real(tmp_path / "alone.so", CENTER_GRAPH)
    monkeypatch.setenv("FAKE_LIBCUDA_DEVICES", "0")
    (y,) = open_real(tmp_path / "again.so", CENTER_GRAPH).run(None, {"x": x})
    np.testing.assert_array_equal(y, -x)


@pytest.mark.ort
def test_the_runtime_has_what_the_shell_asks_for(
    fakes: Fakes, operator, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch
) -> None:
    """Nodes for GPUs under the CPU provider's name: its memory is the fake's device memory."""
    monkeypatch.setenv("FAKE_LIBCUDA_ARCH", "103")
    images = [fakes.image("sm_90", "ptx", source=source) for source in (CENTER, TAKE)]
    operators = [
        Operator(None, CudaKernel(CENTER, (images[0],))),
        Operator(None, CudaKernel(TAKE, (images[1],))),
    ]
    data = image_data(operators)
    assert data is not None
    units = [
        replace(
            unit, text=unit.text.replace('"CUDAExecutionProvider"', '"CPUExecutionProvider"')
        )
        for unit in shell_units(operators, levels(), images=data)
    ]
    path = tmp_path / "renamed.so"
    fakes.toolchain.link([*fakes.toolchain.compile(units), data.object()], path)
    capfd.readouterr()
    center = open_real(path, CENTER_GRAPH)
    assert "compiles its PTX for compute_90" in capfd.readouterr().err
    for shape in ((5, 8), (0, 8), (300, 40)):
        x = aligned(*shape)
        (y,) = center.run(None, {"x": x})
        expected = x - x.mean(axis=0, dtype=np.float64) if x.size else x
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    take = open_real(path, TAKE_GRAPH)
    table = aligned(6, 3)
    (y,) = take.run(None, {"t": table, "i": np.array([5, 6])})
    with pytest.raises(Exception, match="an index was out of range in an earlier run"):
        take.run(None, {"t": table, "i": np.array([5, 1])})
    (y,) = take.run(None, {"t": table, "i": np.array([5, 1])})
    np.testing.assert_array_equal(y, table[[5, 1]])
    del center, take
    assert len(fakes.lines("cuModuleUnload")) == 2
