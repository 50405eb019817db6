"""Fourier transforms, whole and of frames, and the matrix that takes spectra to the mel scale.

A transform is written as the sum that it is, so its work grows with the square of the length.
The powers of the root of unity are computed once, in double precision.

Source: https://onnx.ai/onnx/operators/onnx__DFT.html and its siblings.
"""

from __future__ import annotations

from collections.abc import Callable

from op_library._text import (
    Loop,
    Loops,
    at,
    definition,
    loops,
    names,
    needed,
    only_output,
    require_equal,
    scalar,
    select,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op, same_size
from tcfuse.types import DType, Size


@onnx_op("DFT", since=17, kind=Kind.CONTRACTION, static=[1])
def dft_17(call: OpCall) -> str:
    """The Fourier transform along the axis that an attribute says."""
    return dft(call, int(call.attributes.get("axis", 1)))


@onnx_op("DFT", since=20, kind=Kind.CONTRACTION, static=[1, 2])
def dft_20(call: OpCall) -> str:
    """The Fourier transform along the axis that an input says."""
    axis = scalar(call, 2)
    return dft(call, -2 if axis is None else axis)


def dft(call: OpCall, axis: int) -> str:
    """The transform of a signal, cut or filled up with zeros to its length.

    Onesided, the second half of a spectrum is left out; the inverse of that is real, and adds
    every element but the first and the middle one twice.
    """
    x, y = needed(call, 0), only_output(call)
    if not -x.rank <= axis < x.rank - 1 or axis == -1 or x.shape[-1] not in (1, 2):
        raise UnsupportedError(f"DFT of {x} along axis {axis}")
    axis %= x.rank
    inverse, onesided = (bool(call.attributes.get(n, 0)) for n in ("inverse", "onesided"))
    is_real = inverse and onesided
    given = y.shape[axis] if is_real else scalar(call, 1)
    length = x.shape[axis] if given is None else given
    require_spectrum(y.shape[axis], length, onesided=onesided and not inverse)
    point = loops(y.shape)
    over, (term, guard) = point[:-1], terms(length, x.shape[axis], is_half=is_real)
    subscripts = list(names(over))
    subscripts[axis] = "n"

    def element(part: int) -> str:
        value = at("X", (*subscripts, str(part)))
        value = f"({select(guard, value, '0')})" if guard else value
        return f"(n == 0 || 2 * n == {length} ? 1 : 2) * {value}" if is_real else value

    scale = f" / ({length})" if inverse else ""
    real, imaginary = (f"{at(name, names(over))}{scale}" for name in ("Re", "Im"))
    body = [
        *roots(length, x.dtype, inverse=inverse),
        *sums(over, over[axis][0], term, element, length, is_complex=x.shape[-1] == 2),
        statement(
            "Y", point, real if is_real else f"{point[-1][0]} == 0 ? {real} : {imaginary}"
        ),
    ]
    return definition(call, {"X": x}, {"Y": y}, body)


def require_spectrum(size: Size, length: Size, *, onesided: bool) -> None:
    """Check that a dimension holds the spectrum of a signal; half of a size has no text.

    Raises:
        UnsupportedError: It does not.
    """
    if not onesided:
        require_equal(size, length)
    elif isinstance(size, int) and isinstance(length, int):
        require_equal(size, length // 2 + 1)


def terms(length: Size, given: Size, *, is_half: bool) -> tuple[Loop, str]:
    """The loop ``n`` over what is added up, and the condition on which there is something."""
    if isinstance(length, int) and isinstance(given, int):
        return ("n", min(length // 2 + 1 if is_half else length, given)), ""
    if is_half:
        return ("n", given), f"2 * n <= {length}"
    return ("n", length), "" if same_size(length, given) else f"n < {given}"


def roots(length: Size, dtype: DType, *, inverse: bool) -> list[str]:
    """Statements that compute the powers of the root of unity, ``Cos`` and ``Sin``."""
    over: Loops = (("m", length),)
    angle, to = f"double(2 * m) / ({length})", dtype.compute.tc
    return [
        statement("Cos", over, f"{to}(cospi({angle}))"),
        statement("Sin", over, f"{to}({'' if inverse else '-'}sinpi({angle}))"),
    ]


def sums(
    over: Loops,
    frequency: str,
    term: Loop,
    element: Callable[[int], str],
    length: Size,
    *,
    is_complex: bool,
) -> list[str]:
    """Statements that compute the parts ``Re`` and ``Im`` of a transform.

    Args:
        over: The loops of the result.
        frequency: The one of these that counts frequencies.
        term: The loop over the signal.
        element: The real (0) or imaginary (1) part of the signal there.
        length: The length of the signal.
        is_complex: Whether the signal has an imaginary part.
    """
    cosine, sine = (f"{name}({frequency} * n % ({length}))" for name in ("Cos", "Sin"))
    real, imaginary = f"{element(0)} * {cosine}", f"{element(0)} * {sine}"
    if is_complex:
        real = f"{real} - {element(1)} * {sine}"
        imaginary = f"{imaginary} + {element(1)} * {cosine}"
    return [
        statement("Re", over, real, assign="+=!", reduce=(term,)),
        statement("Im", over, imaginary, assign="+=!", reduce=(term,)),
    ]


@onnx_op("STFT", since=17, kind=Kind.CONTRACTION, static=[1, 3])
def stft(call: OpCall) -> str:
    """The transform of each frame of a signal, weighted by a window."""
    x, window, y = needed(call, 0), call.input(2), only_output(call)
    step, length = scalar(call, 1), scalar(call, 3)
    if x.rank != 3 or x.shape[-1] not in (1, 2) or not step or step < 0:
        raise UnsupportedError(f"STFT of {x} with step {step}")
    size: Size = length or (window.shape[0] if window else x.shape[1])
    if window:
        require_equal(window.shape[0], size)
    onesided = bool(call.attributes.get("onesided", 1))
    require_spectrum(y.shape[2], size, onesided=onesided)
    point = loops(y.shape)
    batch, frame, frequency, part = names(point)
    weight = " * Window(n)" if window else ""

    def element(k: int) -> str:
        return f"X({batch}, {step} * {frame} + n, {k}){weight}"

    over = point[:-1]
    real, imaginary = (at(name, names(over)) for name in ("Re", "Im"))
    body = [
        *roots(size, x.dtype, inverse=False),
        *sums(over, frequency, ("n", size), element, size, is_complex=x.shape[-1] == 2),
        statement("Y", point, f"{part} == 0 ? {real} : {imaginary}"),
    ]
    return definition(call, {"X": x, "Window": window}, {"Y": y}, body)


@onnx_op("MelWeightMatrix", since=17, kind=Kind.ELEMENTWISE, static=[0, 1])
def mel_weight_matrix(call: OpCall) -> str:
    """A triangle for each band of the mel scale, over the frequencies of a spectrum."""
    bands, length, y = scalar(call, 0), scalar(call, 1), only_output(call)
    rates = {name: needed(call, k) for k, name in enumerate(("Rate", "Low", "High"), start=2)}
    if bands is None or length is None or any(type_.rank for type_ in rates.values()):
        raise UnsupportedError("MelWeightMatrix with other than scalars")
    mel = "2595.0 * log10(1 + double({}) / 700.0)"
    low, high = mel.format("Low"), mel.format("High")
    edge = f"({low}) + ({high} - {low}) / {bands + 2} * double(m)"
    hertz = f"700.0 * (exp10(({edge}) / 2595.0) - 1)"
    edges = f"int64(floor({length + 1} * ({hertz}) / double(Rate)))"
    point = loops(y.shape)
    place, band = names(point)
    lets = {
        "left": f"Edges({band})",
        "centre": f"Edges({band} + 1)",
        "right": f"Edges({band} + 2)",
    }
    dtype = y.dtype.tc
    falls = f"{dtype}(right - {place}) / {dtype}(right - centre)"
    rises = f"{dtype}({place} - left) / {dtype}(centre - left)"
    value = (
        f"{place} >= centre && {place} < right ? {falls} : "
        f"({place} == centre ? 1 : ({place} >= left && {place} < centre ? {rises} : 0))"
    )
    body = [
        statement("Edges", (("m", bands + 2),), edges),
        statement("Y", point, value, lets=lets),
    ]
    return definition(call, dict(rates), {"Y": y}, body)
