"""The small graphs with matrix products, as Tensor Comprehensions.

``optimize`` leaves matrix products to ONNX Runtime, so ``op_library`` defines none of them as
operators; as definitions of one's own they are compiled like anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scripts.gpu.subject import Subject
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """A definition, and the shapes in which it takes the graph's inputs and weights.

    Attributes:
        text: Its parameters have the names of inputs and weights.
        shapes: For each that has another shape, that, with -1 for the first dimension.
    """

    text: str
    shapes: Mapping[str, Shape]


FORMS: dict[str, Form] = {
    "tbmm": Form(
        """
def tbmm(float(B, N, K) x, float(B, M, K) y) -> (o) {
  o(b, n, m) +=! x(b, n, k) * y(b, m, k)
}""",
        {},
    ),
    "kru3": Form(
        """
def kru3(float(M, A, B, C) x, float(A, I) w0, float(B, J) w1, float(C, K) w2) -> (o) {
  s(m, a, b, k) +=! x(m, a, b, c) * w2(c, k)
  t(m, a, j, k) +=! s(m, a, b, k) * w1(b, j)
  o(m, i, j, k) +=! t(m, a, j, k) * w0(a, i)
}""",
        {"x": (-1, 16, 16, 16)},
    ),
    "gconv": Form(
        """
def gconv(float(N, G, C, H, W) x, float(G, F, C, 3, 3) w, float(G, F) bias) -> (o) {
  s(n, g, f, i, j) +=! i + p >= 1 && i + p - 1 < H && j + q >= 1 && j + q - 1 < W
      ? x(n, g, c, i + p - 1, j + q - 1) * w(g, f, c, p, q) : 0
      where i in 0:H, j in 0:W
  o(n, g, f, i, j) = fmax(s(n, g, f, i, j) + bias(g, f), 0)
}""",
        {"x": (-1, 32, 4, 56, 56), "w": (32, 4, 4, 3, 3), "bias": (32, 4)},
    ),
    "mlp3": Form(
        """
def mlp3(float(B, I) x, float(I, J) w0, float(J) b0, float(J, K) w1, float(K) b1,
         float(K, L) w2, float(L) b2) -> (o) {
  s(b, j) +=! x(b, i) * w0(i, j)
  s(b, j) = fmax(s(b, j) + b0(j), 0)
  t(b, k) +=! s(b, j) * w1(j, k)
  t(b, k) = fmax(t(b, k) + b1(k), 0)
  o(b, l) +=! t(b, k) * w2(k, l)
  o(b, l) = fmax(o(b, l) + b2(l), 0)
}""",
        {},
    ),
    "attn_small": Form(
        """
def attn_small(float(B, H, T, D) q, float(B, H, T, D) k, float(B, H, T, D) v,
               float(H, T, T) bias) -> (o) {
  s(b, h, i, j) +=! q(b, h, i, d) * k(b, h, j, d)
  r(b, h, i, j) = s(b, h, i, j) * 0.17677669529663687 + bias(h, i, j)
  m(b, h, i) max=! r(b, h, i, j)
  e(b, h, i, j) = exp(r(b, h, i, j) - m(b, h, i))
  z(b, h, i) +=! e(b, h, i, j)
  a(b, h, i, d) +=! e(b, h, i, j) * v(b, h, j, d)
  o(b, i, h, d) = a(b, h, i, d) / z(b, h, i)
}""",
        {"bias": (3, 49, 49)},
    ),
    "wn_unit": Form(
        """
def wn_unit(float(B, C, T) x, float(2, F, C, 2) w, float(2, F) bias) -> (o) {
  s(b, f, t) +=! x(b, c, t + 16 * p) * w(0, f, c, p) where t in 0:T-16
  g(b, f, t) +=! x(b, c, t + 16 * p) * w(1, f, c, p) where t in 0:T-16
  o(b, f, t) = tanh(s(b, f, t) + bias(0, f)) / (1 + exp(-(g(b, f, t) + bias(1, f))))
}""",
        {"w": (2, 64, 64, 2), "bias": (2, 64)},
    ),
}


def subject_of_form(name: str, arrays: Mapping[str, np.ndarray]) -> Subject:
    """The definition of a graph, with its inputs and weights.

    Raises:
        KeyError: There is no definition of that name.
        TcfuseError: A stage refuses it.
    """
    form = FORMS[name]
    written = kernel_form(check(parse(form.text), affine=False))
    ready = check(written.definition, sizes=written.interface.sizes)
    inputs = []
    for port in written.interface.inputs:
        array = arrays[port.name]
        shape = form.shapes.get(port.name, array.shape)
        inputs.append(np.ascontiguousarray(array.reshape(shape)))
    return Subject(name, ready, written.interface, tuple(inputs))
