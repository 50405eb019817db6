"""Contractions on GPUs: recognised, tiled, and right under the emulator.

Each case says how it may run: its sizes, and which tile and how many neighbours a lambda has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from tcfuse.codegen.device import device_header
from tcfuse.cuda_options import CudaOptions
from tcfuse.emulator.emulate import Emulated, emulate
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.cuda import Kernel, compile_kernel
from tcfuse.targets.geometry import plan
from tcfuse.targets.nvrtc import compile_cuda
from tcfuse.tc.evaluate import evaluate
from tests.targets.kernels import checked_of, interface_of

PAD = "h + r - 1 >= 0 && h + r - 1 < H && w + s - 1 >= 0 && w + s - 1 < W"


@dataclass(frozen=True)
class Case:
    """A definition, its inputs' shapes, and how it is launched with them."""

    text: str
    shapes: Mapping[str, Sequence[int]]
    template: str  # the tile and the neighbours of the operands and the result
    numerics: str = "default"
    symbolic: bool = False  # whether the kernel is for all sizes


MATMUL = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }"
CASES = {
    "matmul": Case(
        MATMUL,
        {"A": (64, 48), "B": (48, 96)},
        "FmaTile<float, 2, 1, 4, 4, 16>, 4, 4, 4",
    ),
    "symbolic": Case(
        MATMUL,
        {"A": (40, 52), "B": (52, 68)},
        "FmaTile<float, 2, 1, 4, 4, 16>, 4, 4, 4",
        symbolic=True,
    ),
    "odd": Case(
        MATMUL,
        {"A": (45, 51), "B": (51, 67)},
        "FmaTile<float, 2, 1, 4, 4, 8>, 1, 1, 1",
        symbolic=True,
    ),
    "middle": Case(
        MATMUL,
        {"A": (520, 16), "B": (16, 1028)},
        "FmaTile<float, 2, 2, 8, 4, 8>, 4, 4, 4",
        symbolic=True,
    ),
    "large": Case(
        MATMUL,
        {"A": (1280, 12), "B": (12, 1672)},
        "FmaTile<float, 4, 2, 8, 8, 8>, 4, 4, 4",
    ),
    "both turned": Case(
        "def mm(float(K, M) A, float(N, K) B) -> (C) { C(i, j) +=! A(k, i) * B(j, k) }",
        {"A": (36, 44), "B": (68, 36)},
        "FmaTile<float, 2, 1, 4, 4, 16>, 4, 4, 4",
    ),
    "result turned": Case(
        "def mm(float(M, K) A, float(K, N) B) -> (C) { C(j, i) +=! A(i, k) * B(k, j) }",
        {"A": (48, 36), "B": (36, 52)},
        "FmaTile<float, 2, 1, 4, 4, 16>, 4, 4, 4",
    ),
    "batched": Case(
        "def mm(float(B, M, K) X, float(B, N, K) Y) -> (C) {"
        " C(b, i, j) +=! X(b, i, k) * Y(b, j, k) }",
        {"X": (3, 33, 40), "Y": (3, 36, 40)},
        "FmaTile<float, 2, 1, 4, 4, 16>, 4, 4, 4",
    ),
    "double": Case(
        "def mm(double(M, K) A, double(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }",
        {"A": (40, 50), "B": (50, 46)},
        "FmaTile<double, 2, 1, 4, 4, 8>, 2, 2, 2",
    ),
    "prologue and epilogue": Case(
        "def mm(float(M, K) A, float(K) scale, float(K, N) B, float(N) bias, float(M, N) R)"
        " -> (D) { C(i, j) +=! fmax(A(i, k) * scale(k), 0.0) * B(k, j)\n"
        " D(i, j) = fmax(C(i, j) + bias(j), 0.0) + R(i, j) }",
        {"A": (40, 44), "scale": (44,), "B": (44, 52), "bias": (52,), "R": (40, 52)},
        "FmaTile<float, 2, 1, 4, 4, 16>, 4, 4, 4",
    ),
    "started from a bias": Case(
        "def fc(float(B, M) I, float(N, M) W, float(N) bias) -> (O) {"
        " O(b, n) = bias(n) where b in 0:B\n O(b, n) += I(b, m) * W(n, m)\n"
        " O(b, n) = fmax(O(b, n), 0) }",
        {"I": (40, 44), "W": (52, 44), "bias": (52,)},
        "FmaTile<float, 2, 1, 4, 4, 16>, 4, 4, 4",
    ),
    "three factors": Case(
        "def mm(float(M, K) A, float(K, N) B, float(N) s) -> (C) {"
        " C(i, j) +=! A(i, k) * B(k, j) * s(j) }",
        {"A": (40, 44), "B": (44, 52), "s": (52,)},
        "FmaTile<float, 2, 1, 4, 4, 16>, 4, 4, 4",
    ),
    "float16": Case(
        "def mm(float16(M, K) A, float16(K, N) B, float16(N) b) -> (float16(M, N) D) {"
        " C(i, j) +=! A(i, k) * B(k, j)\n D(i, j) = float16(C(i, j) + b(j)) }",
        {"A": (40, 44), "B": (44, 52), "b": (52,)},
        "FmaTile<float, 2, 1, 4, 4, 16>, 4, 4, 4",
        numerics="strict",
    ),
    "float16, tensor cores": Case(
        "def mm(float16(M, K) A, float16(K, N) B, float16(N) b) -> (float16(M, N) D) {"
        " C(i, j) +=! A(i, k) * B(k, j)\n D(i, j) = float16(C(i, j) + b(j)) }",
        {"A": (72, 88), "B": (88, 104), "b": (104,)},
        "MmaTile<tcf::HalfCores, 2, 2, 2, 4>, 8, 8, 4",
    ),
    "bfloat16 turned, of any size": Case(
        "def mm(bfloat16(K, M) A, bfloat16(N, K) B) -> (C) { C(i, j) +=! A(k, i) * B(j, k) }",
        {"A": (50, 67), "B": (71, 50)},
        "MmaTile<tcf::BfloatCores, 4, 2, 1, 4>, 1, 2, 1",
    ),
    "float16 padded": Case(
        "def cv(float16(N, C, H, W) X, float16(O, C, 3, 3) F) -> (T) {\n"
        f" T(n, o, h, w) +=! ({PAD} ? X(n, c, h + r - 1, w + s - 1) : 0.0) * F(o, c, r, s)"
        " where n in 0:N, h in 0:H, w in 0:W }",
        {"X": (2, 8, 9, 12), "F": (20, 8, 3, 3)},
        "MmaTile<tcf::HalfCores, 4, 2, 1, 4>, 8, 1, 4",
    ),
    "float16, large tile": Case(
        "def mm(float16(M, K) A, float16(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }",
        {"A": (1264, 40), "B": (40, 1528)},
        "MmaTile<tcf::HalfCores, 4, 2, 2, 8>, 8, 8, 4",
    ),
    "tf32": Case(
        MATMUL,
        {"A": (72, 52), "B": (52, 68)},
        "MmaTile<tcf::Tf32Cores, 2, 2, 2, 4>, 4, 4, 4",
        numerics="fast",
    ),
    "tf32 turned": Case(
        "def mm(float(K, M) A, float(N, K) B) -> (C) { C(i, j) +=! A(k, i) * B(j, k) }",
        {"A": (52, 72), "B": (68, 52)},
        "MmaTile<tcf::Tf32Cores, 2, 2, 2, 4>, 4, 4, 4",
        numerics="fast",
    ),
    "conv1d strided": Case(
        "def cv(float(2, 6, 101) X, float(24, 6, 5) W) -> (Y) {"
        " Y(n, o, h) +=! X(n, c, 2 * h + r) * W(o, c, r) where h in 0:48 }",
        {"X": (2, 6, 101), "W": (24, 6, 5)},
        "FmaTile<float, 2, 1, 4, 4, 8>, 2, 1, 4",
    ),
    "conv2d padded": Case(
        "def cv(float(N, C, H, W) X, float(O, C, 3, 3) F, float(O) b) -> (Y) {\n"
        f" T(n, o, h, w) +=! ({PAD} ? X(n, c, h + r - 1, w + s - 1) : 0.0) * F(o, c, r, s)"
        " where n in 0:N, h in 0:H, w in 0:W\n"
        " Y(n, o, h, w) = fmax(T(n, o, h, w) + b(o), 0.0) }",
        {"X": (2, 4, 9, 12), "F": (20, 4, 3, 3), "b": (20,)},
        "FmaTile<float, 2, 1, 4, 4, 8>, 4, 1, 4",
    ),
    "conv2d dilated, grouped": Case(
        "def cv(float(N, G, C, H, W) X, float(G, O, C, 3, 3) F) -> (Y) {"
        " Y(n, g, o, h, w) +=! X(n, g, c, h + 2 * r, w + 2 * s) * F(g, o, c, r, s)"
        " where h in 0:H - 4, w in 0:W - 4 }",
        {"X": (2, 3, 4, 12, 13), "F": (3, 18, 4, 3, 3)},
        "FmaTile<float, 2, 1, 4, 4, 8>, 4, 1, 4",
        symbolic=True,
    ),
    "conv3d": Case(
        "def cv(float(2, 3, 6, 7, 8) X, float(20, 3, 3, 2, 3) F) -> (Y) {"
        " Y(n, o, d, h, w) +=! X(n, c, d + q, h + r, w + s) * F(o, c, q, r, s)"
        " where d in 0:4, h in 0:6, w in 0:6 }",
        {"X": (2, 3, 6, 7, 8), "F": (20, 3, 3, 2, 3)},
        "FmaTile<float, 2, 1, 4, 4, 8>, 2, 1, 4",
    ),
    "tensor product": Case(
        "def td(float(A, B, C) X, float(C, B, D) Y) -> (Z) {"
        " Z(a, d) +=! X(a, b, c) * Y(c, b, d) }",
        {"X": (35, 4, 12), "Y": (12, 4, 40)},
        "FmaTile<float, 2, 1, 4, 4, 8>, 1, 4, 4",
    ),
}


@cache
def compiled(name: str) -> Kernel:
    case = CASES[name]
    checked = checked_of(case.text)
    options = MappingOptions(numerics=case.numerics)
    fixed = {} if case.symbolic else sizes_of(case)
    return compile_kernel(checked, interface_of(checked), "k", options, CudaOptions(), fixed)


def sizes_of(case: Case) -> dict[str, int]:
    """The sizes that the inputs have."""
    checked = checked_of(case.text)
    return {
        name: size
        for tensor, shape in case.shapes.items()
        for name, size in zip(checked.tensors[tensor].shape, shape, strict=True)
        if isinstance(name, str)
    }


def inputs_of(kernel: Kernel, case: Case) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [
        random.uniform(-1, 1, case.shapes[port.name]).astype(port.type.dtype.numpy)
        for port in kernel.source.interface.inputs
    ]


def launched(kernel: Kernel, arrays: Sequence[np.ndarray]) -> str:
    """The template instance that the kernel's only phase runs with those inputs."""
    (step,) = plan(kernel.source, [a.shape for a in arrays]).steps
    entry = kernel.source.text.partition(f" {step.symbol}(")[2]
    arguments = entry.partition("<")[2].partition(">(")[0]
    return arguments.replace(f", {step.shared_bytes}", "", 1)


def expected(kernel: Kernel, case: Case, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    ports = kernel.source.interface.inputs
    given = {p.name: a.astype(np.float64) for p, a in zip(ports, arrays, strict=True)}
    found = evaluate(checked_of(case.text), given)
    return [found[port.name] for port in kernel.source.interface.outputs]


def check(kernel: Kernel, case: Case, ran: Emulated, arrays: Sequence[np.ndarray]) -> None:
    assert not ran.fault
    assert not ran.reports, "\n".join(map(str, ran.reports))
    for got, want in zip(ran.outputs, expected(kernel, case, arrays), strict=True):
        tolerance = 2e-3 if got.dtype == np.float16 else 1e-5
        tolerance = 4e-3 if case.numerics == "fast" else tolerance  # tf32 has 10 bits
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_is_tiled_as_its_sizes_want(name: str) -> None:
    case = CASES[name]
    kernel = compiled(name)
    found = launched(kernel, inputs_of(kernel, case))
    assert found == f"int, tcf::{case.template}"


@pytest.mark.compiler
@pytest.mark.parametrize("name", CASES)
def test_computes_what_the_definition_says(name: str) -> None:
    case = CASES[name]
    kernel = compiled(name)
    arrays = inputs_of(kernel, case)
    trace = name not in (
        "large",
        "middle",
        "float16, large tile",
    )  # a traced access takes 50 ns
    check(kernel, case, emulate(kernel.source, arrays, trace=trace), arrays)


@pytest.mark.compiler
@pytest.mark.parametrize(
    "case",
    [
        ("float", "default", "FmaTile<float, 2, 1, 4, 4, 16>"),
        ("float", "fast", "MmaTile<tcf::Tf32Cores"),
        ("float16", "default", "MmaTile<tcf::HalfCores"),
    ],
)
@pytest.mark.parametrize("turned", ["", "A", "B"])
def test_no_access_takes_more_than_it_must(case: tuple[str, str, str], turned: str) -> None:
    kind, numerics, tile = case
    a, b = ("K, M", "k, i") if turned == "A" else ("M, K", "i, k"), ("K, N", "k, j")
    b = ("N, K", "j, k") if turned == "B" else b
    text = f"""def mm({kind}({a[0]}) A, {kind}({b[0]}) B, float(N) bias) -> (D) {{
      C(i, j) +=! A({a[1]}) * B({b[1]})
      D(i, j) = fmax(C(i, j) + bias(j), 0.0)
    }}"""
    checked = checked_of(text)
    options, sizes = MappingOptions(numerics=numerics), {"M": 128, "N": 64, "K": 64}
    kernel = compile_kernel(checked, interface_of(checked), "k", options, CudaOptions(), sizes)
    random = np.random.default_rng(3)
    arrays = [
        random.uniform(-1, 1, [sizes[n] for n in shape.split(", ")]).astype(
            "float32" if kind == "float" else kind
        )
        for shape in (a[0], b[0])
    ] + [np.ones(sizes["N"], np.float32)]
    assert tile in launched(kernel, arrays)
    ran = emulate(kernel.source, arrays)
    assert not ran.reports
    sites = [site for run in ran.runs for site in run.sites]
    assert {site.space for site in sites} == {"global", "shared"}
    assert [str(site) for site in sites if site.factor > 1.05] == []


@pytest.mark.cuda_build
@pytest.mark.parametrize("name", ["large", "odd", "conv2d padded", "float16, large tile"])
def test_spills_no_register(name: str) -> None:
    images = compile_cuda(compiled(name).source, ("sm_80", "sm_90"), header=device_header())
    assert not images.warnings
    tiled = [r for s, by in images.resources.items() if "_tiled_" in s for r in by.values()]
    assert tiled
    assert max(r.registers for r in tiled) <= 128


@pytest.mark.cuda_build
def test_shared_memory_starts_where_vectors_may() -> None:
    images = compile_cuda(compiled("matmul").source, ("sm_90",), header=device_header()).images
    (ptx,) = (image.data.decode() for image in images if image.kind == "ptx")
    assert ".extern .shared .align 16 .b8 tcf_shared[]" in ptx
