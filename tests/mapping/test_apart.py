"""Contractions that leave the loops they share, and those that stay."""

from __future__ import annotations

import numpy as np
import pytest

from tcfuse.cuda_options import CudaOptions
from tcfuse.emulator.emulate import emulate
from tcfuse.mapping.gpu import plan_gpu_kernel
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.tree import Band, Sequence
from tcfuse.targets.cuda import Kernel, compile_kernel
from tcfuse.tc.evaluate import evaluate
from tests.targets.kernels import checked_of, interface_of

ATTENTION = """
def attention(float(B, N, D) Q, float(B, M, D) K, float(B, M, D) V) -> (O) {
  S(b, i, j) +=! Q(b, i, d) * K(b, j, d)
  T(b, i, j) = S(b, i, j) * 0.125
  Most(b, i) max=! T(b, i, j)
  E(b, i, j) = exp(T(b, i, j) - Most(b, i))
  Z(b, i) +=! E(b, i, j)
  P(b, i, j) = E(b, i, j) / Z(b, i)
  O(b, i, d) +=! P(b, i, j) * V(b, j, d)
}
"""
SEPARABLE = """
def separable(float(N, C, H, W) I, float(C, 3, 3) F, float(D, C) P, float(D) Shift) -> (O) {
  T(n, c, h, w) +=! I(n, c, h + y, w + x) * F(c, y, x)
  R(n, c, h, w) = fmax(T(n, c, h, w), 0.0)
  Q(n, d, h, w) +=! R(n, c, h, w) * P(d, c)
  O(n, d, h, w) = Q(n, d, h, w) + Shift(d)
}
"""
COSINE = """
def cosine(float(M, D) A, float(N, D) B) -> (O) {
  Dot(m, n) +=! A(m, d) * B(n, d)
  SquaresA(m) +=! A(m, d) * A(m, d)
  SquaresB(n) +=! B(n, d) * B(n, d)
  O(m, n) = Dot(m, n) * rsqrt(SquaresA(m) * SquaresB(n))
}
"""
DISTANCES = """
def nearest(float(M, D) A, float(N, D) B) -> (Least) {
  Far(m, n) +=! (A(m, d) - B(n, d)) * (A(m, d) - B(n, d))
  Least(m) min=! Far(m, n)
}
"""


def nests(text: str, **sizes: int) -> list[set[str]]:
    """The tensors that each nest of the mapped tree writes."""
    for name, size in sizes.items():
        text = text.replace(f"({name},", f"({size},").replace(f" {name},", f" {size},")
        text = text.replace(f" {name})", f" {size})").replace(f"({name})", f"({size})")
    plan = plan_gpu_kernel(checked_of(text), (), MappingOptions(), CudaOptions())
    child = plan.tree.child
    parts = [f.statements for f in child.filters] if isinstance(child, Sequence) else []
    written = {s.name: s.comprehension.tensor for s in plan.scop.statements}
    return [{written[name] for name in names} for names in parts] or [set(written.values())]


def test_the_two_products_of_attention_leave_its_softmax() -> None:
    scores, softmax, result = nests(ATTENTION)
    assert scores == {"S", "T"}
    assert {"Most", "E", "Z", "P"} <= softmax
    assert "O" in result
    assert not result & {"P", "Z"}


def test_what_follows_element_by_element_comes_along() -> None:
    depthwise, pointwise = nests(SEPARABLE)
    assert "R" in depthwise
    assert {"Q", "O"} <= pointwise
    assert nests(COSINE)[-1] >= {"Dot", "O"}


def test_small_contractions_stay_where_they_are() -> None:
    scores = nests(ATTENTION, B=2, N=4, M=8, D=8)[0]
    assert scores >= {"S", "T", "Most"}


def test_sums_that_are_no_products_of_two_stay() -> None:
    together = nests(DISTANCES)
    assert any({"Least"} < found for found in together)


def test_the_loops_around_are_the_free_ones() -> None:
    plan = plan_gpu_kernel(checked_of(SEPARABLE), (), MappingOptions(), CudaOptions())
    assert isinstance(plan.scheduled.tree.child, Band)  # one nest before
    assert isinstance(plan.tree.child, Sequence)


def compiled(text: str, numerics: str = "default") -> Kernel:
    checked, options = checked_of(text), MappingOptions(numerics=numerics)
    return compile_kernel(checked, interface_of(checked), "k", options, CudaOptions())


@pytest.mark.parametrize("text", [ATTENTION, SEPARABLE, COSINE])
@pytest.mark.parametrize("numerics", ["default", "strict"])
def test_the_order_is_proved(text: str, numerics: str) -> None:
    kernel = compiled(text, numerics)
    assert "written whole" in str(kernel.proof)
    assert "tcf::contract<" in kernel.source.text


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (ATTENTION, ((2, 40, 32), (2, 44, 32), (2, 44, 32))),
        (SEPARABLE, ((2, 20, 9, 10), (20, 3, 3), (24, 20), (24,))),
        (COSINE, ((36, 48), (40, 48))),
    ],
)
def test_computes_the_same(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    kernel, random = compiled(text), np.random.default_rng(5)
    arrays = [random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    ran = emulate(kernel.source, arrays)
    assert not ran.reports
    ports = kernel.source.interface.inputs
    given = {p.name: a.astype(np.float64) for p, a in zip(ports, arrays, strict=True)}
    right = evaluate(checked_of(text), given)
    np.testing.assert_allclose(ran.outputs[0], right["O"], rtol=1e-5, atol=1e-5)
