"""A kernel with inputs and the answer in float64; whether a GPU gets it right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scripts.gpu.outcome import Outcome
from scripts.gpu.workbench import Workbench, cuda_source
from tcfuse import gpu
from tcfuse.interface import Interface
from tcfuse.ort.accuracy import compare, tolerance
from tcfuse.ort.exact import exact_outputs, reduction_length
from tcfuse.ort.feeds import Feed
from tcfuse.targets.geometry import bind
from tcfuse.tc.checked import CheckedDef
from tcfuse.types import DType


@dataclass(frozen=True)
class Subject:
    """What is to be checked.

    Attributes:
        name: Of the kernel.
        checked: What it computes, over view shapes.
        interface: Its signature.
        inputs: In order.
    """

    name: str
    checked: CheckedDef
    interface: Interface
    inputs: tuple[np.ndarray, ...]

    @property
    def feed(self) -> Feed:
        """The inputs with the sizes that they imply."""
        sizes = bind(self.interface, [array.shape for array in self.inputs])
        return Feed(self.name, "normal", self.inputs, sizes)


def check(subject: Subject, bench: Workbench) -> Outcome:
    """Compile and run a subject; what is wrong, or the largest error."""
    source = cuda_source(subject.checked, subject.interface, subject.name)
    kernel = bench.load(source)
    try:
        with gpu.Call(kernel, subject.inputs) as call:
            call.enqueue()
            outputs = call.read()
    finally:
        kernel.close()
    return judge(subject, outputs) | {"launches": len(source.phases)}


def judge(subject: Subject, outputs: list[np.ndarray]) -> Outcome:
    """Hold outputs against float64.

    An output is right when it is as near as rounding allows; ``ort.accuracy`` says how near
    that is, and here the answer in the output's own type is the original.  What is left of
    numbers of about one that cancel counts as near too.
    """
    feed = subject.feed
    exact = exact_outputs(subject.checked, subject.interface, feed)
    length = reduction_length(subject.checked, feed)
    worst = 0.0
    for port, ours, true in zip(subject.interface.outputs, outputs, exact, strict=True):
        dtype = port.type.dtype
        with np.errstate(all="ignore"):
            rounded = np.asarray(true).reshape(ours.shape).astype(dtype.numpy)
        found = compare(ours, rounded, np.asarray(true), dtype, length)
        if found.verdict and (found.problem or not near(ours, true, dtype, length)):
            return {"status": "wrong", "why": f"{port.name}: {found.verdict}"}
        worst = max(worst, found.error)
    return {"status": "ok", "error": worst}


def near(ours: np.ndarray, exact: np.ndarray, dtype: DType, length: int) -> bool:
    """Whether the largest difference is one that the rounding of numbers of about one makes."""
    if not dtype.is_float or ours.size == 0:
        return False
    wide = np.asarray(exact, np.float64).reshape(ours.shape)
    apart = float(np.abs(ours.astype(np.float64) - wide).max())
    return apart <= tolerance(dtype, length) * (1 + float(np.abs(wide).max()))
