"""What normalisations share: statements that compute a mean and a scaling for each row.

The variance is the mean of squared deviations, which does not cancel.  ``stash_type`` asks for
single precision inside, which 16-bit types get anyway; ``double`` stays ``double``.
"""

from __future__ import annotations

from op_library._rows import Rows
from op_library._text import statement, widened
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall
from tcfuse.types import DType, TensorType


def standard_stash(call: OpCall) -> None:
    """Check that the operator computes in single precision.

    Raises:
        UnsupportedError: It asks for another precision.
    """
    stash = call.attributes.get("stash_type", 1)
    if stash != 1:
        raise UnsupportedError(f"{call.op_type} with stash_type {stash}")


def deviations(rows: Rows, value: str, dtype: DType) -> list[str]:
    """Statements that compute the mean ``Center`` and ``Squares``, the deviations squared."""
    deviation = f"({value} - {rows.at_row('Center')})"
    return [
        rows.fold("Sum", widened(dtype, value)),
        rows.each_row("Center", f"{rows.at_row('Sum')} / {rows.count}"),
        rows.fold("Squares", f"{deviation} * {deviation}"),
    ]


def squares(rows: Rows, value: str) -> list[str]:
    """The statement that computes ``Squares``, the sum of squares."""
    return [rows.fold("Squares", f"{value} * {value}")]


def scaling(rows: Rows, epsilon: str) -> str:
    """The statement that computes ``Scaling = 1 / sqrt(mean of squares + epsilon)``."""
    mean = f"{rows.at_row('Squares')} / {rows.count}"
    return rows.each_row("Scaling", f"1 / sqrt({mean} + {epsilon})")


def converted(value: str, source: DType, target: DType) -> str:
    """``value`` computed in ``source``'s precision, fit to be assigned to ``target``."""
    narrows = source is DType.FLOAT64 and target is not DType.FLOAT64
    return f"{target.tc}({value})" if narrows else value


def output(call: OpCall, k: int) -> TensorType | None:
    """The type of output ``k``; ``None`` when it is unused."""
    return call.outputs[k] if k < len(call.outputs) else None


def row_output(
    rows: Rows, name: str, temporary: str, source: DType, type_: TensorType | None
) -> list[str]:
    """The statement that copies a row's statistic to an output, if the output is used."""
    if type_ is None:
        return []
    value = converted(rows.at_row(temporary), source, type_.dtype)
    return [statement(name, rows.with_ones(), value)]


def first_output(call: OpCall) -> TensorType:
    """The type of the first output.

    Raises:
        UnsupportedError: It is unused.
    """
    first = output(call, 0)
    if first is None:
        raise UnsupportedError(f"{call.op_type} without its first output")
    return first
