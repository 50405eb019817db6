"""What a kernel should answer to a feed: its definition in float64."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tcfuse.ort.feeds import Feed
from tcfuse.ort.sizes import evaluate_size
from tcfuse.targets.base import Interface
from tcfuse.tc.ast import AssignKind
from tcfuse.tc.checked import CheckedDef


def exact_outputs(
    checked: CheckedDef, interface: Interface, feed: Feed, flushes: Collection[str] = ()
) -> Sequence[np.ndarray]:
    """Float64 answers, in the shapes the definition declares.

    Args:
        checked: The definition.
        interface: The kernel's signature.
        feed: The inputs.
        flushes: Functions whose results below the least normal number are 0, as they are in a
            kernel: an infinity times such a result is NaN.
    """
    from tcfuse.tc.evaluate import evaluate  # loads SciPy and SymPy: not for a warm run

    arrays: dict[str, np.ndarray] = {}
    for param, array in zip(checked.definition.params, feed.arrays, strict=True):
        assert param.type is not None, f"parameter {param.name} has no type"
        shape = tuple(evaluate_size(size, feed.sizes) for size in param.type.shape)
        arrays[param.name] = array.reshape(shape)
    with np.errstate(all="ignore"):
        answers = evaluate(checked, arrays, feed.sizes, flushes=flushes)
    return [answers[name] for name in checked.outputs]


def reduction_length(checked: CheckedDef, feed: Feed) -> int:
    """An upper bound for the number of elements any output element sums over."""
    if not adds_up(checked):
        return 1
    return max((array.size for array in feed.arrays), default=1)


def adds_up(checked: CheckedDef) -> bool:
    """Whether some statement is a sum or a product, whose order of operations matters."""
    sums = (AssignKind.ADD, AssignKind.ADD_RESET, AssignKind.MUL, AssignKind.MUL_RESET)
    return any(s.reduction and s.comprehension.assign in sums for s in checked.statements)
