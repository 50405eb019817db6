"""Contractions give what the evaluator gives: tiny, odd and larger, fixed and symbolic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from tcfuse.tc.binding import size_value
from tcfuse.tc.evaluate import evaluate
from tests.codegen.conftest import runnable
from tests.targets.kernels import build, checked_of, kernel_of
from tests.targets.test_cpu import assert_equal

pytestmark = pytest.mark.compiler

PRODUCT = """def f({t}({M}, {K}) A, {t}({K}, {N}) B) -> ({t}({M}, {N}) C) {{
  C(m, n) +=! A(m, k) * B(k, n)
}}"""
TRANSPOSED = PRODUCT.replace("{K}, {N}) B", "{N}, {K}) B").replace("B(k, n)", "B(n, k)")
BATCHED = """def f({t}(3, {M}, {K}) A, {t}(3, {K}, {N}) B, {t}({N}) Z) -> (C) {{
  C(b, m, n) +=! A(b, m, k) * B(b, k, n)
  C(b, m, n) = fmax(C(b, m, n) + Z(n), 0)
}}"""
CONVOLUTION = """
def f({t}(2, 2, {K}, {M}, {N}) I, {t}(2, {F}, {K}, 2, 3) W, {t}(2, {F}) B) -> (O) {{
  O(n, g, f, h, w) +=! I(n, g, c, h + kh, w + kw) * W(g, f, c, kh, kw)
  O(n, g, f, h, w) = O(n, g, f, h, w) + B(g, f)
}}"""
DISTANCE = """def f({t}({M}, {K}) A, {t}({N}, {K}) B) -> ({t}({M}, {N}) C) {{
  C(m, n) max=! A(m, k) - B(n, k)
}}"""
TWO_SUMS = """def f({t}({M}, {K}) A, {t}({K}, {N}) B, {t}({K}, {N}) D) -> ({t}({M}, {N}) C) {{
  S(m, n) +=! A(m, k) * B(k, n)
  T(m, n) +=! A(m, k) * D(k, n)
  C(m, n) = S(m, n) * T(m, n)
}}"""
CHAIN = """def f({t}({B}, {M}, {K}) X, {t}({K}, {N}) U, {t}({M}, {M}) V) -> (O) {{
  S(b, m, n) +=! X(b, m, k) * U(k, n)
  R(b, m, n) = fmax(S(b, m, n), 0)
  T(b, m, n) +=! R(b, k, n) * V(m, k)
  O(b, n, m) = T(b, m, n) * 2
}}"""
ATTENTION = """def f({t}({B}, {N}, {K}) Q, {t}({B}, {M}, {K}) K, {t}({B}, {M}, {K}) V) -> (O) {{
  S(b, i, j) +=! Q(b, i, d) * K(b, j, d)
  Most(b, i) max=! S(b, i, j)
  E(b, i, j) = S(b, i, j) - Most(b, i)
  Z(b, i) +=! E(b, i, j)
  P(b, i, j) = E(b, i, j) + Z(b, i)
  O(b, i, d) +=! P(b, i, j) * V(b, j, d)
}}"""
GROUPED = """
def f({t}(2, 8, {M}, {N}) X, {t}(12, 2, 3, 3) W, {t}(12) B) -> ({t}(2, 12, {M}, {N}) O) {{
  T(n, f, h, w) +=! h + y - 1 >= 0 && h + y - 1 < {M} && w + x - 1 >= 0 && w + x - 1 < {N}
    ? X(n, f / 3 * 2 + c, h + y - 1, w + x - 1) * W(f, c, y, x) : 0
    where n in 0:2, f in 0:12, h in 0:{M}, w in 0:{N}, c in 0:2, y in 0:3, x in 0:3
  O(n, f, h, w) = T(n, f, h, w) + B(f)
    where n in 0:2, f in 0:12, h in 0:{M}, w in 0:{N}
}}"""
PACKED = {"M": 24, "K": 300, "N": 70}


@dataclass(frozen=True)
class Case:
    """A definition whose sizes are numbers, or names with numbers to try."""

    text: str
    sizes: tuple[dict[str, int], ...]


def cases() -> Iterator[Case]:
    some = [{"M": 7, "K": 5, "N": 26}, {"M": 13, "K": 3, "N": 9}, {"M": 1, "K": 1, "N": 1}]
    some += [{"M": 26, "K": 17, "N": 3}, {"M": 2, "K": 33, "N": 33}, {"M": 0, "K": 4, "N": 8}]
    names = {"M": "M", "K": "K", "N": "N"}
    for text in (PRODUCT, TRANSPOSED, BATCHED, DISTANCE, TWO_SUMS):
        yield Case(text.format(t="float", **names), tuple(some))
        for sizes in (*some[:2], PACKED):
            yield Case(text.format(t="float", **sizes), ({},))
    for dtype in ("double", "float16", "int32"):
        yield Case(PRODUCT.format(t=dtype, **names), tuple(some[:3]))
        yield Case(TRANSPOSED.format(t=dtype, **PACKED), ({},))
    for text in (CHAIN, ATTENTION):
        for m, k, n in ((16, 16, 16), (26, 24, 26), (49, 32, 49), (7, 70, 33)):
            yield Case(text.format(t="float", B=5, M=m, K=k, N=n), ({},))
    for m, k, n in ((26, 72, 26), (3, 5, 31), (9, 40, 33), (50, 15, 17)):
        yield Case(TRANSPOSED.format(t="float", M=m, K=k, N=n), ({},))
        yield Case(TRANSPOSED.format(t="int8", M=m, K=k, N=n), ({},))
    for m, n in ((14, 20), (7, 7), (3, 56), (1, 1)):
        yield Case(GROUPED.format(t="float", M=m, N=n), ({},))
    yield Case(GROUPED.format(t="int32", M=5, N=9), ({},))
    yield Case(GROUPED.format(t="float16", M=5, N=33), ({},))
    images = [{"K": 3, "M": 5, "N": 29, "F": 5}, {"K": 8, "M": 7, "N": 7, "F": 32}]
    images += [{"K": 2, "M": 4, "N": 13, "F": 1}]
    for image in images:
        yield Case(CONVOLUTION.format(t="float", **image), ({},))
    yield Case(CONVOLUTION.format(t="float", K="K", M="M", N="N", F="F"), tuple(images))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Every case for every level of this processor."""
    definitions = [checked_of(case.text) for case in cases()]
    kernels = [kernel_of(d, hint=f"k{i}") for i, d in enumerate(definitions)]
    return build(definitions, kernels, runnable(), tmp_path_factory.mktemp("contractions"))


@pytest.mark.parametrize("number", range(len(list(cases()))))
def test_a_contraction_is_right(compiled, number: int):
    case = list(cases())[number]
    rng = np.random.default_rng(number)
    for sizes in case.sizes:
        for level in compiled:
            kernel = level[number]
            inputs = {}
            for name in kernel.checked.inputs:
                kind = kernel.checked.tensors[name]
                shape = tuple(size_value(s, sizes) for s in kind.shape)
                values = rng.integers(-8, 8, shape) / (4 if kind.dtype.is_float else 1)
                inputs[name] = values.astype(kind.dtype.numpy)
            found, fault = kernel(inputs, sizes)
            assert fault == 0
            assert_equal(kernel.checked, found, evaluate(kernel.checked, inputs, sizes))
