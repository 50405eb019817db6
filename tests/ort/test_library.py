"""Libraries built from hand-written kernels, inside ONNX Runtime.

The function that stands behind each operator computes something else on purpose, so that an
answer tells which of the two ran.
"""

from __future__ import annotations

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from tcfuse.errors import ToolchainError
from tcfuse.ort.library import CustomOpLibrary, build_library, shell_units
from tcfuse.targets.base import Interface, KernelSource, Phase, Port
from tcfuse.targets.compilers import levels
from tcfuse.targets.toolchain import Toolchain, Unit
from tcfuse.types import DType, Size, TensorType

ort = pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.compiler, pytest.mark.ort]

ARGUMENTS = (
    "(char* const* t, const int64_t* n, char* shared, char* local,"
    " int64_t begin, int64_t end, int32_t* fault)"
)


def port(name: str, *shape: Size, dtype: DType = DType.FLOAT32) -> Port:
    return Port(name, TensorType(dtype, shape))


def scale(dtype: DType, c_type: str) -> KernelSource:
    """``Y(i, j) = 2 X(i, j) + B(j)``."""
    name = f"scale_{dtype.tc}"
    text = f"""
TCF_KERNEL({name}_0){ARGUMENTS} {{
  const {c_type}* x = (const {c_type}*)t[0];
  const {c_type}* b = (const {c_type}*)t[1];
  {c_type}* y = ({c_type}*)t[2];
  for (int64_t i = begin; i < end; i++)
    for (int64_t j = 0; j < n[1]; j++) y[i * n[1] + j] = x[i * n[1] + j] * 2 + b[j];
}}"""
    x, b = port("x", "n0", "n1", dtype=dtype), port("b", "n1", dtype=dtype)
    interface = Interface((x, b), (port("y", "n0", "n1", dtype=dtype),), ("n0", "n1"))
    return KernelSource(name, text, interface, (Phase(f"{name}_0", "n0", "200 * n1"),))


def center() -> KernelSource:
    """``Y(i, j) = X(i, j) - mean of X(., j)``: two loops, shared and local scratch."""
    text = f"""
TCF_KERNEL(center_0){ARGUMENTS} {{
  const float* x = (const float*)t[0];
  double* mean = (double*)shared;
  double* column = (double*)local;
  for (int64_t j = begin; j < end; j++) {{
    double sum = 0;
    for (int64_t i = 0; i < n[0]; i++) column[i] = x[i * n[1] + j];
    for (int64_t i = 0; i < n[0]; i++) sum += column[i];
    mean[j] = sum / n[0];
  }}
}}
TCF_KERNEL(center_1){ARGUMENTS} {{
  const float* x = (const float*)t[0];
  float* y = (float*)t[1];
  const double* mean = (const double*)shared;
  for (int64_t i = begin; i < end; i++)
    for (int64_t j = 0; j < n[1]; j++) y[i * n[1] + j] = x[i * n[1] + j] - mean[j];
}}"""
    interface = Interface((port("x", "n0", "n1"),), (port("y", "n0", "n1"),), ("n0", "n1"))
    phases = (Phase("center_0", "n1", "300 * n0"), Phase("center_1", "n0", "100 * n1"))
    return KernelSource("center", text, interface, phases, "8 * n1", "8 * n0")


def take() -> KernelSource:
    """``Y(i, j) = T(I(i), j)``, which finds indices out of range."""
    text = f"""
TCF_KERNEL(take_0){ARGUMENTS} {{
  const float* table = (const float*)t[0];
  const int64_t* index = (const int64_t*)t[1];
  float* y = (float*)t[2];
  for (int64_t i = begin; i < end; i++) {{
    if (index[i] < 0 || index[i] >= n[0]) {{ *fault = 1; return; }}
    for (int64_t j = 0; j < n[1]; j++) y[i * n[1] + j] = table[index[i] * n[1] + j];
  }}
}}"""
    interface = Interface(
        (port("table", "n0", "n1"), port("index", "n2", dtype=DType.INT64)),
        (port("y", "n2", "n1"),),
        ("n0", "n1", "n2"),
    )
    return KernelSource("take", text, interface, (Phase("take_0", "n2", "100 * n1"),))


def flatten() -> KernelSource:
    """Constants, formulas and conditions: ``X(n0, n1, 3), Z(n0 + 1) -> Y(n2 = 3 n0 n1), S``."""
    text = f"""
TCF_KERNEL(flatten_0){ARGUMENTS} {{
  const float* x = (const float*)t[0];
  for (int64_t i = begin; i < end && i < n[2]; i++) ((float*)t[2])[i] = x[i] + 1;
  if (begin == 0) *(float*)t[3] = (float)n[2];
}}"""
    interface = Interface(
        (port("x", "n0", "n1", 3), port("z", "n0 + 1")),
        (port("y", "n2"), port("s")),
        ("n0", "n1", "n2"),
        derived=(("n2", "3 * n0 * n1"),),
        checks=(("n1 != 7", "seven columns are too many"),),
    )
    return KernelSource(
        "flatten", text, interface, (Phase("flatten_0", "tcf_max(n2, 1)", "1"),)
    )


KERNELS = (
    scale(DType.FLOAT32, "float"),
    scale(DType.FLOAT64, "double"),
    scale(DType.INT32, "int32_t"),
    scale(DType.INT8, "int8_t"),
    center(),
    take(),
    flatten(),
)

FUNCTIONS = """
<opset_import: ["" : 17], domain: "tcfuse">
scale_float (x, b) => (y) { y = Sub (x, b) }
<opset_import: ["" : 17], domain: "tcfuse">
scale_double (x, b) => (y) { y = Sub (x, b) }
<opset_import: ["" : 17], domain: "tcfuse">
scale_int32 (x, b) => (y) { y = Sub (x, b) }
<opset_import: ["" : 17], domain: "tcfuse">
scale_int8 (x, b) => (y) { y = Cast<to = 3> (x) }
<opset_import: ["" : 17], domain: "tcfuse">
center (x) => (y) { y = Neg (x) }
<opset_import: ["" : 17], domain: "tcfuse">
take (table, index) => (y) { y = Gather (table, index) }
"""


def model(graph: str, functions: str = FUNCTIONS) -> bytes:
    """A model whose graph is ``(inputs) => (outputs) { nodes }``."""
    header = '<ir_version: 8, opset_import: ["" : 17, "tcfuse" : 1]>\n'
    return onnx.parser.parse_model(f"{header}g {graph}\n{functions}").SerializeToString()


SCALE = "(float[N, M] x, float[M] b) => (float[N, M] y) { y = tcfuse.scale_float (x, b) }"
TAKE = "(float[N, M] t, int64[K] i) => (float[K, M] y) { y = tcfuse.take (t, i) }"
CENTER = "(float[N, M] x) => (float[N, M] y) { y = tcfuse.center (x) }"
FLATTEN = (
    "(float[A, B, 3] x, float[C] z) => (float[D] y, float s) { y, s = tcfuse.flatten (x, z) }"
)


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return Toolchain.default(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> CustomOpLibrary:
    folder = tmp_path_factory.mktemp("library")
    return build_library(KERNELS, folder / "kernels.so", toolchain)


def open_model(
    proto: bytes, library: CustomOpLibrary | None, threads: int = 1, **entries: str
) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    for key, value in entries.items():
        options.add_session_config_entry(f"tcfuse.{key}", value)
    if library is not None:
        options.register_custom_ops_library(str(library.path))
    return ort.InferenceSession(proto, options, providers=["CPUExecutionProvider"])


def array(*shape: int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 9).astype(dtype)


def test_library_needs_nothing_and_exports_one_symbol(library: CustomOpLibrary) -> None:
    data = library.path.read_bytes()
    assert data.count(b"RegisterCustomOps") >= 1
    assert b".so." not in data
    assert library.ops == tuple(kernel.name for kernel in KERNELS)


def test_operator_runs_with_the_library_and_function_without(library: CustomOpLibrary) -> None:
    x, b = array(5, 7), array(7)
    np.testing.assert_array_equal(
        open_model(model(SCALE), library).run(None, {"x": x, "b": b})[0], x * 2 + b
    )
    np.testing.assert_array_equal(
        open_model(model(SCALE), None).run(None, {"x": x, "b": b})[0], x - b
    )


@pytest.mark.parametrize("level", [ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
                                   ort.GraphOptimizationLevel.ORT_ENABLE_ALL])  # fmt: skip
def test_operator_runs_at_every_optimization_level(library: CustomOpLibrary, level) -> None:
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.register_custom_ops_library(str(library.path))
    session = ort.InferenceSession(model(SCALE), options)
    x, b = array(5, 7), array(7)
    np.testing.assert_array_equal(session.run(None, {"x": x, "b": b})[0], x * 2 + b)


@pytest.mark.parametrize(
    ("onnx_type", "tc", "dtype"),
    [("double", "double", np.float64), ("int32", "int32", np.int32), ("int8", "int8", np.int8)],
)
def test_other_element_types(library: CustomOpLibrary, onnx_type, tc, dtype) -> None:
    graph = f"({onnx_type}[N, M] x, {onnx_type}[M] b) => ({onnx_type}[N, M] y)"
    session = open_model(model(f"{graph} {{ y = tcfuse.scale_{tc} (x, b) }}"), library)
    x, b = array(4, 9, dtype=dtype), array(9, dtype=dtype)
    expected = (x * np.asarray(2, dtype) + b).astype(dtype)
    np.testing.assert_array_equal(session.run(None, {"x": x, "b": b})[0], expected)


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (1000, 3000), (3000, 1000), (5000, 5)])
def test_loops_share_scratch_of_any_size(library: CustomOpLibrary, shape) -> None:
    """Scratch of the stack and of the allocator; one thread and two."""
    x = array(*shape)
    expected = x - x.mean(axis=0, dtype=np.float64)
    for threads in (1, 2):
        session = open_model(model(CENTER), library, threads)
        for _ in range(3):
            np.testing.assert_allclose(
                session.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-5
            )


def test_running_out_of_memory_is_an_error(tmp_path: Path, toolchain: Toolchain) -> None:
    """ONNX Runtime's allocator throws, through the operator shell."""
    text = f"TCF_KERNEL(huge_0){ARGUMENTS} {{}}"
    interface = Interface((port("x", "n0"),), (port("y", "n0"),), ("n0",))
    kernel = KernelSource("huge", text, interface, (Phase("huge_0", "n0", "1"),), "n0 << 45")
    library = build_library([kernel], tmp_path / "huge.so", toolchain)
    graph = "(float[N] x) => (float[N] y) { y = tcfuse.huge (x) }"
    session = open_model(model(graph, ""), library)
    for _ in range(2):
        with pytest.raises(Exception, match="Failed to allocate memory"):
            session.run(None, {"x": array(3)})


@pytest.mark.parametrize("threads", [1, 2])
def test_index_out_of_range_is_an_error(library: CustomOpLibrary, threads) -> None:
    session = open_model(model(TAKE), library, threads)
    table, index = array(50, 300), np.arange(2000) % 50
    np.testing.assert_array_equal(session.run(None, {"t": table, "i": index})[0], table[index])
    index[1234] = 50
    with pytest.raises(Exception, match="tcfuse: take: an index is out of range"):
        session.run(None, {"t": table, "i": index})
    index[1234] = 49
    np.testing.assert_array_equal(session.run(None, {"t": table, "i": index})[0], table[index])


def test_derived_sizes_and_scalar_outputs(library: CustomOpLibrary) -> None:
    x = array(2, 5, 3)
    y, s = open_model(model(FLATTEN, ""), library).run(None, {"x": x, "z": array(3)})
    np.testing.assert_array_equal(y, x.reshape(-1) + 1)
    assert s.shape == ()
    assert s == 30


@pytest.mark.parametrize(
    ("x", "z", "sentence"),
    [
        ((2, 5, 4), (3,), "input 0, dimension 2 is 4; the model says it is 3"),
        ((2, 5, 3), (9,), r"1, dimension 0 is 9; .* dimension 0 of input 0 \+ 1, which is 3"),
        ((2, 7, 3), (3,), "seven columns are too many"),
    ],
)  # fmt: skip
def test_shapes_the_model_does_not_allow_are_refused(
    library: CustomOpLibrary, x, z, sentence
) -> None:
    graph = FLATTEN.replace("A, B, 3", "A, B, E")
    session = open_model(model(graph, ""), library)
    with pytest.raises(Exception, match=f"tcfuse: flatten: .*{sentence}"):
        session.run(None, {"x": array(*x), "z": array(*z)})
    session.run(None, {"x": array(2, 5, 3), "z": array(3)})


def test_wrong_rank_is_refused(library: CustomOpLibrary) -> None:
    graph = "(float x, float b) => (float[N, M] y) { y = tcfuse.scale_float (x, b) }"
    proto = onnx.ModelProto.FromString(model(graph))
    for value in proto.graph.input:
        value.type.tensor_type.ClearField("shape")
    session = open_model(proto.SerializeToString(), library)
    with pytest.raises(Exception, match="input 1 has rank 2; the model says 1"):
        session.run(None, {"x": array(2, 2), "b": array(2, 2)})


def test_disagreeing_dimensions_are_named(library: CustomOpLibrary) -> None:
    graph = SCALE.replace("float[M] b", "float[K] b")
    session = open_model(model(graph), library)
    with pytest.raises(Exception, match="it equals dimension 1 of input 0, which is 7"):
        session.run(None, {"x": array(5, 7), "b": array(6)})


@pytest.mark.parametrize("shape", [(0, 7), (5, 0), (0, 0)])
def test_empty_tensors(library: CustomOpLibrary, shape) -> None:
    session = open_model(model(SCALE), library, threads=2)
    y = session.run(None, {"x": array(*shape), "b": array(shape[1])})[0]
    assert y.shape == shape


def test_an_empty_divisor_does_not_trap(tmp_path: Path, toolchain: Toolchain) -> None:
    """A derived size that divides by a dimension of zero."""
    text = f"TCF_KERNEL(share_0){ARGUMENTS} {{}}"
    interface = Interface(
        (port("x", "n0", "n1"),), (port("y", "n2"),), ("n0", "n1", "n2"), (("n2", "n0 / n1"),)
    )
    kernel = KernelSource("share", text, interface, (Phase("share_0", "n2 % n1", "1"),))
    library = build_library([kernel], tmp_path / "share.so", toolchain)
    for shape in ("[N, M]", "[3, 0]"):
        graph = f"(float{shape} x) => (float[K] y) {{ y = tcfuse.share (x) }}"
        session = open_model(model(graph, ""), library)
        assert session.run(None, {"x": array(3, 0)})[0].shape == (3,)


def test_some_outputs_may_be_empty(library: CustomOpLibrary) -> None:
    session = open_model(model(FLATTEN, ""), library)
    y, s = session.run(None, {"x": array(0, 5, 3), "z": array(1)})
    assert y.shape == (0,)
    assert s == 0


def test_constant_inputs(library: CustomOpLibrary) -> None:
    graph = (
        "(float[N, 3] x) => (float[N, 3] y) <float[3] b = {1, 2, 3}>"
        " { y = tcfuse.scale_float (x, b) }"
    )
    x = array(4, 3)
    first, second = (open_model(model(graph), library) for _ in range(2))
    expected = x * 2 + np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(first.run(None, {"x": x})[0], expected)
    del first
    np.testing.assert_array_equal(second.run(None, {"x": x})[0], expected)


def test_constant_of_the_wrong_size_is_refused_when_it_runs(library: CustomOpLibrary) -> None:
    graph = (
        "(float[N, M] x) => (float[N, M] y) <float[2] b = {1, 2}>"
        " { y = tcfuse.scale_float (x, b) }"
    )
    session = open_model(model(graph), library)
    with pytest.raises(Exception, match="input 1, dimension 0 is 2"):
        session.run(None, {"x": array(4, 3)})


def test_inside_a_branch(library: CustomOpLibrary) -> None:
    graph = """(bool c, float[N, M] x, float[M] b) => (float[N, M] y) {
      y = If (c) <
        then_branch = a () => (float[N, M] p) { p = tcfuse.scale_float (x, b) },
        else_branch = d () => (float[N, M] q) { q = Identity (x) }
      >
    }"""
    session = open_model(model(graph), library)
    x, b = array(4, 3), array(3)
    np.testing.assert_array_equal(
        session.run(None, {"c": np.array(True), "x": x, "b": b})[0], x * 2 + b
    )


def declared_shape(graph: str, library: CustomOpLibrary) -> list:
    """Shape of the first output as ONNX Runtime infers it; the model does not say it."""
    proto = onnx.ModelProto.FromString(model(graph, ""))
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    return open_model(proto.SerializeToString(), library).get_outputs()[0].shape


def test_shapes_are_inferred(library: CustomOpLibrary) -> None:
    assert declared_shape(SCALE, library) == ["N", "M"]
    assert declared_shape(SCALE.replace("N", "4"), library) == [4, "M"]
    assert declared_shape(TAKE, library) == ["K", "M"]
    assert declared_shape(FLATTEN.replace("A, B", "2, 5"), library) == [30]
    # A product of symbols has no name, so nothing is claimed about it.
    assert declared_shape(FLATTEN, library) == []


def test_named_operators_can_be_switched_off(library: CustomOpLibrary) -> None:
    x, b = array(5, 7), array(7)
    for disabled, runs in [
        ("scale_float", False),
        ("*", False),
        ("take, scale_float", False),
        ("take,center", True),
        ("scale", True),
        ("scale_float2", True),
    ]:
        session = open_model(model(SCALE), library, disable=disabled)
        expected = x * 2 + b if runs else x - b
        np.testing.assert_array_equal(session.run(None, {"x": x, "b": b})[0], expected)


@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_lower_instruction_sets_can_be_asked_for(library: CustomOpLibrary, level) -> None:
    x, b = array(5, 7), array(7)
    session = open_model(model(SCALE), library, level=level)
    np.testing.assert_array_equal(session.run(None, {"x": x, "b": b})[0], x * 2 + b)


def test_many_threads_and_sessions(library: CustomOpLibrary) -> None:
    proto = model(SCALE)
    x, b = array(300, 500), array(500)
    barrier = threading.Barrier(4)

    def work(seed: int) -> None:
        barrier.wait()
        for turn in range(8):
            disabled = {"disable": "take"} if (seed + turn) % 3 == 0 else {}
            session = open_model(proto, library, threads=1 + turn % 2, **disabled)
            for _ in range(3):
                y = session.run(None, {"x": x, "b": b})[0]
                np.testing.assert_array_equal(y, x * 2 + b)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_one_session_in_many_threads(library: CustomOpLibrary) -> None:
    session = open_model(model(CENTER), library, threads=2)
    x = array(1000, 400)
    expected = session.run(None, {"x": x})[0]

    def work(_: int) -> None:
        for _ in range(5):
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_libraries_of_several_models(
    tmp_path: Path, library: CustomOpLibrary, toolchain: Toolchain
) -> None:
    other = build_library(KERNELS[:1], tmp_path / "other.so", toolchain)
    x, b = array(5, 7), array(7)
    sessions = [open_model(model(SCALE), each) for each in (library, other)]
    for session in sessions:
        np.testing.assert_array_equal(session.run(None, {"x": x, "b": b})[0], x * 2 + b)
    # An operator that the library lacks is run by its function.
    session = open_model(model(TAKE), other)
    assert session.run(None, {"t": array(3, 2), "i": np.array([-1])})[0].shape == (1, 2)


def test_own_memory_functions(tmp_path: Path, toolchain: Toolchain) -> None:
    """A kernel whose compiler calls memcpy and its kin gets ours."""
    text = """
    #define EXPORT extern "C" __attribute__((visibility("default")))
    typedef unsigned long N;
    EXPORT void copy(void* t, const void* f, N n) { __builtin_memcpy(t, f, n); }
    EXPORT void move(void* t, const void* f, N n) { __builtin_memmove(t, f, n); }
    EXPORT void fill(void* t, int value, N n) { __builtin_memset(t, value, n); }
    EXPORT int order(const void* a, const void* b, N n) { return __builtin_memcmp(a, b, n); }
    """
    shell = {unit.name: unit for unit in shell_units(KERNELS[:1], levels())}
    wrappers = Unit("wrappers.cpp", text, levels()[0])
    objects = toolchain.compile([wrappers, shell["tcf_memory.c"]])
    toolchain.link(objects, tmp_path / "memory.so")
    memory = ctypes.CDLL(str(tmp_path / "memory.so"))
    source = bytes(range(1, 101))
    for n in (0, 1, 15, 16, 17, 31, 32, 33, 64, 99):
        expected = bytearray(source)
        for call, to, given in [("copy", 0, 0), ("fill", 0, 7), ("move", 1, 0), ("move", 0, 1)]:
            target = (ctypes.c_char * 100)(*source)
            start = ctypes.addressof(target)
            if call == "copy":
                target = (ctypes.c_char * 100)()
                memory.copy(target, source, ctypes.c_ulong(n))
                expected = source[:n] + bytes(100 - n)
            elif call == "fill":
                memory.fill(target, given, ctypes.c_ulong(n))
                expected = bytes([given]) * n + source[n:]
            else:
                at = [ctypes.c_void_p(start + offset) for offset in (to, given)]
                memory.move(*at, ctypes.c_ulong(n))
                expected = bytearray(source)
                expected[to : to + n] = source[given : given + n]
            assert bytes(target.raw) == bytes(expected), (call, to, n)
    for a, b in [(b"same", b"same"), (b"a\xff", b"a\x01"), (b"a\x01", b"a\xff")]:
        found = memory.order(a, b, ctypes.c_ulong(len(a)))
        assert (found > 0) - (found < 0) == (a > b) - (a < b)


def test_builds_are_reproducible_and_cached(tmp_path: Path) -> None:
    toolchain = Toolchain.default(tmp_path / "cache")
    lowest = levels()[:1]
    first = build_library(KERNELS[:1], tmp_path / "a.so", toolchain, built=lowest)
    n_objects = toolchain.contents().objects
    second = build_library(KERNELS[:1], tmp_path / "b.so", toolchain, built=lowest)
    uncached = Toolchain(toolchain.compiler)
    third = build_library(KERNELS[:1], tmp_path / "c.so", uncached, built=lowest)
    assert first.digest == second.digest == third.digest
    assert toolchain.contents().objects == n_objects


def test_missing_symbols_are_found_when_the_library_is_built(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    kernel = scale(DType.FLOAT32, "float")
    text = f'extern "C" float sinf(float);\n{kernel.text.replace("+ b[j]", "+ sinf(b[j])")}'
    broken = KernelSource(kernel.name, text, kernel.interface, kernel.phases)
    with pytest.raises(ToolchainError, match="sinf"):
        build_library([broken], tmp_path / "broken.so", toolchain)
    assert not (tmp_path / "broken.so").exists()
