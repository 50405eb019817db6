"""Shape rules of Fourier transforms."""

from __future__ import annotations

from tcfuse.graph.shape_call import Call, Shapes, UnknownShapeError, normalize_axis, shape_rule
from tcfuse.graph.symbols import Dim, add, floor_divide, multiply, subtract


def _scalar(call: Call, k: int) -> Dim | None:
    """The only element of input ``k``; ``None`` when the input is absent.

    Raises:
        UnknownShapeError: It is there and not known.
    """
    if call.input(k) is None:
        return None
    elements = call.elements(k)
    if not elements or elements[0] is None:
        raise UnknownShapeError
    return elements[0]


def _half(length: Dim) -> Dim:
    """How many elements of a spectrum are left of a real signal."""
    return add(floor_divide(length, 2), 1)


@shape_rule("DFT")
def dft(call: Call) -> Shapes:
    """The length of the transform or half of it; two parts, or one of a real signal."""
    x = call.shape(0)
    axis = call.attribute("axis", 1)
    if call.opset >= 20:
        (axis,) = call.integers(2) or (-2,)
    axis = normalize_axis(int(axis), len(x))
    inverse, onesided = (bool(call.attribute(n, 0)) for n in ("inverse", "onesided"))
    length = _scalar(call, 1)
    if length is None:
        length = multiply(2, subtract(x[axis], 1)) if inverse and onesided else x[axis]
    made = _half(length) if onesided and not inverse else length
    parts = 1 if inverse and onesided else 2
    return [(*x[:axis], made, *x[axis + 1 : -1], parts)]


@shape_rule("STFT")
def stft(call: Call) -> Shapes:
    """As many frames as fit, each with its spectrum or half of it, of two parts."""
    batch, signal, *_ = call.shape(0)
    step, length = _scalar(call, 1), _scalar(call, 3)
    if step is None:
        raise UnknownShapeError
    if length is None:
        window = call.shape_or_none(2)
        if window is None and call.input(2) is not None:
            raise UnknownShapeError
        length = signal if window is None else window[0]
    frames = add(floor_divide(subtract(signal, length), step), 1)
    made = _half(length) if call.attribute("onesided", 1) else length
    return [(batch, frames, made, 2)]
