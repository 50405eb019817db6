"""Run every kernel against the operators it replaces and against float64.

The original runs in ONNX Runtime with its optimizations off; float64 is the evaluator's answer
for the kernel's Tensor Comprehension.  A kernel that fails is given back, with its numbers.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from tcfuse.codegen.mathlib import FLUSHES
from tcfuse.errors import TcfuseError, VerificationError
from tcfuse.ort.accuracy import Comparison, compare
from tcfuse.ort.arrays import run
from tcfuse.ort.exact import adds_up, exact_outputs, reduction_length
from tcfuse.ort.feeds import Feed, feeds
from tcfuse.ort.inference import Session, open_session, ort_errors
from tcfuse.ort.subgraph import constant_of, function_of, single_node
from tcfuse.targets.base import Interface
from tcfuse.tc.checked import CheckedDef

log = logging.getLogger(__name__)

NOT_RUN = "could not be run"

Answer: TypeAlias = Callable[[Mapping[str, np.ndarray]], Sequence[np.ndarray]]


@dataclass(frozen=True, slots=True)
class Verification:
    """What running a kernel against its original showed.

    Attributes:
        problem: Why the kernel must not be used; empty when it may.
        error: Largest error against float64 over all runs with finite answers.
        original_error: The same of the original operators.
        runs: Number of runs compared.
    """

    problem: str
    error: float
    original_error: float
    runs: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel to verify: where it is used, and what it should compute.

    Attributes:
        library: Holds it; ``None`` when ONNX Runtime does not run it.
    """

    model: ir.Model
    node: ir.Node
    library: Path | None
    checked: CheckedDef
    interface: Interface


def verify_kernel(subject: Subject) -> Verification:
    """Compare one kernel for the CPU with its original on every feed."""

    def opened(model: ir.Model) -> Answer:
        fused = open_session(model, subject.library, optimized=False, threads=2)
        return lambda inputs: run(fused, inputs)

    return compare_with_original(subject, opened)


def compare_with_original(
    subject: Subject,
    open_kernel: Callable[[ir.Model], Answer],
    chosen: Callable[[Iterable[Feed]], Iterable[Feed]] = iter,
) -> Verification:
    """Compare whatever computes a fused node with its original operators and float64.

    Args:
        subject: The node.
        open_kernel: Makes a function from inputs by name to outputs, given a model of the node
            alone.  It may raise ``VerificationError``.
        chosen: Picks feeds to run.
    """
    model = single_node(subject.model, subject.node, constants=False)
    function = function_of(subject.model, subject.node)
    if function is None:
        return Verification("the model does not hold the original operators", 0.0, 0.0, 0)
    known = {
        i: tensor.numpy()
        for i, value in enumerate(subject.node.inputs)
        if value is not None and (tensor := constant_of(value)) is not None
    }
    errors = ort_errors()
    try:
        original = open_session(model, optimized=False)
        kernel = open_kernel(model)
    except errors as error:
        return Verification(f"cannot be loaded: {one_line(error)}", 0.0, 0.0, 0)
    given = feeds(
        subject.interface,
        function,
        known,
        sums=adds_up(subject.checked),
        within=[subject.checked.tensors[name].shape for name in subject.checked.temporaries],
    )
    try:
        return _over_feeds(subject, original, kernel, chosen(given))
    except TcfuseError as error:
        return Verification(f"float64 has no answer: {one_line(error)}", 0.0, 0.0, 0)


def _over_feeds(
    subject: Subject, original: Session, kernel: Answer, given: Iterable[Feed]
) -> Verification:
    """The verdict over every feed.

    What cannot be right in any case ends it; errors are compared over all sizes of one fill,
    because in a single small run the original may be exact by luck.
    """
    worst: dict[tuple[int, str], Comparison] = {}
    runs, telling, skipped = 0, 0, ""
    errors = ort_errors()
    refusals: tuple[type[Exception], ...] = (*errors, VerificationError)
    ports = subject.interface.outputs
    for feed in given:
        names = (str(value.name) for value in subject.node.inputs if value is not None)
        inputs = dict(zip(names, feed.arrays, strict=True))
        try:
            expected = run(original, inputs)
        except errors as error:  # the original has no answer for these sizes
            skipped = one_line(error)
            continue
        try:
            ours = kernel(inputs)
        except refusals as error:
            if not any(array.size == 0 for array in expected):
                return Verification(f"{feed.label}: {one_line(error)}", math.inf, 0.0, runs)
            continue
        exact = exact_outputs(subject.checked, subject.interface, feed)
        length = reduction_length(subject.checked, feed)
        for k, port in enumerate(ports):
            found = compare(ours[k], expected[k], exact[k], port.type.dtype, length)
            if found.problem and port.type.dtype.is_float:
                flushed = exact_outputs(subject.checked, subject.interface, feed, FLUSHES)
                again = compare(ours[k], expected[k], flushed[k], port.type.dtype, length)
                found = found if again.problem else again
            if found.problem:
                problem = f"{port.name} of {feed.label}: {found.problem}"
                return Verification(problem, found.error, found.original_error, runs)
            key = (k, feed.fill)
            worst[key] = worst[key].worst(found) if key in worst else found
        runs, telling = runs + 1, telling + _tells(subject.interface, feed)
    if telling == 0:
        return Verification(f"{NOT_RUN}: {skipped or 'no sizes fit'}", 0.0, 0.0, 0)
    for (k, fill), found in worst.items():
        if found.verdict:
            problem = f"{ports[k].name} of {fill}: {found.verdict}"
            return Verification(problem, found.error, found.original_error, runs)
    normal = [found for (_, fill), found in worst.items() if fill == "normal"]
    ours_worst = max((found.error for found in normal), default=0.0)
    theirs_worst = max((found.original_error for found in normal), default=0.0)
    return Verification("", ours_worst, theirs_worst, runs)


def _tells(interface: Interface, feed: Feed) -> bool:
    """Whether something could come out wrong: no input is empty that need not be."""
    pairs = zip(interface.inputs, feed.arrays, strict=True)
    return not any(array.size == 0 and 0 not in port.type.shape for port, array in pairs)


def one_line(error: Exception) -> str:
    """An exception's text without line breaks, at most 200 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."


def reject_reason(verification: Verification) -> str:
    """The sentence for the manifest."""
    return f"verification failed: {verification.problem}"
