"""Scaled dot product attention in statements: scores, their softmax, the values they weigh.

A point of the scores is ``(b, h, q, t)``: batch, head, step of the queries, step of the keys.
Products are summed in single precision at least, and nothing is rounded before the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from op_library._heads import Heads, shared_head, side_by_side
from op_library._rows import Rows
from op_library._statistics import converted
from op_library._text import Loops, at, names, number, require_equal, statement
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall
from tcfuse.types import DType, Size, TensorType


@dataclass(frozen=True, slots=True)
class Attended:
    """Queries, and the keys and values that they attend.

    Attributes:
        shared: The head of the keys that head ``h`` of the queries uses.
        scale: The factor of the scores, as an expression; positive.
        precision: The type of the scores and of all that is computed from them.
    """

    queries: Heads
    keys: Heads
    values: Heads
    shared: str
    scale: str
    precision: DType

    @property
    def scores(self) -> Rows:
        """The points of the scores; a row has the keys of one query."""
        sizes = (self.queries.batch, self.queries.heads, self.queries.steps, self.keys.steps)
        return Rows(tuple(zip("bhqt", sizes, strict=True)), frozenset([3]))

    def products(self) -> list[str]:
        """Statements that compute ``Scores``, products of queries and keys times the scale."""
        inner = (("c", self.queries.width),)
        query = self.queries.at("b", "h", "q", "c")
        key = self.keys.at("b", self.shared, "t", "c")
        value = f"{self.precision.tc}({query}) * {key}"
        scores = self.scores
        return [
            statement("Product", scores.point, value, assign="+=!", reduce=inner),
            scores.each_point("Scores", f"{scores.at_point('Product')} * {self.scale}"),
        ]

    def softmax(self, logits: str, closed: str | None = None) -> list[str]:
        """Statements that compute ``Weight``, the softmax over the keys.

        Args:
            logits: What the softmax is of: ``Scores``, or something computed from it.
            closed: Whether a query attends no key, whatever the scores are; its weights are 0.
        """
        rows, factor = self.scores, ""
        if logits == "Scores":
            # A factor taken out, the largest is subtracted before anything may be rounded.
            logits, factor = "Product", f" * {self.scale}"
        value, shift = rows.at_point(logits), rows.at_row("Shift")
        difference = f"({value} - {shift}){factor}" if factor else f"{value} - {shift}"
        largest, sum_ = rows.at_row("Largest"), rows.at_row("Sum")
        nothing = f"{sum_} == 0" if closed is None else f"{closed} || {sum_} == 0"
        return [
            rows.fold("Largest", value, "max=!"),
            rows.each_row("Shift", f"{largest} == -inf() ? 0 : {largest}"),
            rows.each_point("Exp", f"exp({difference})"),
            rows.fold("Sum", rows.at_point("Exp")),
            rows.each_point("Weight", f"{nothing} ? 0 : {rows.at_point('Exp')} / {sum_}"),
        ]

    def weighted(self, name: str, type_: TensorType) -> list[str]:
        """Statements that compute the output: the values, weighted and summed."""
        (b, h, q), c = self.scores.kept, ("c", self.values.width)
        weight = self.scores.at_point("Weight")
        value = f"{weight} * {self.values.at('b', self.shared, 't', 'c')}"
        wide = self.precision is DType.FLOAT64
        over = (b, h, q, c) if type_.rank == 4 else (b, q, h, c)
        if type_.rank == 4 and not (wide and type_.dtype is not DType.FLOAT64):
            return [statement(name, over, value, assign="+=!", reduce=self.scores.reduced)]
        point: Loops = over
        read = at("Mean", names(over))
        if type_.rank == 3:
            point, read = side_by_side("Mean", type_, self.values.width, "bqc")
        if wide:
            read = converted(read, self.precision, type_.dtype)
        return [
            statement("Mean", over, value, assign="+=!", reduce=self.scores.reduced),
            statement(name, point, read),
        ]


def attended(
    call: OpCall, queries: Heads, keys: Heads, values: Heads, precision: DType
) -> Attended:
    """Queries with keys and values that fit them.

    Raises:
        UnsupportedError: Their sizes do not agree, or cannot be shown to.
    """
    for tensor in (keys, values):
        require_equal(tensor.batch, queries.batch)
        require_equal(tensor.steps, keys.steps)
        require_equal(tensor.heads, keys.heads)
    require_equal(keys.width, queries.width)
    shared = shared_head(call, queries.heads, keys.heads, "h")
    scale = scale_of(call, queries.width, precision)
    return Attended(queries, keys, values, shared, scale, precision)


def scale_of(call: OpCall, width: Size, precision: DType) -> str:
    """The factor of the scores as an expression: ``1 / sqrt(width)`` by default.

    Raises:
        UnsupportedError: It is not positive.
    """
    given = call.attributes.get("scale")
    if given is None or (call.domain and given == 0):
        if isinstance(width, int):
            return number(1 / math.sqrt(width))
        return f"(1 / sqrt({precision.tc}({width})))"
    if not given > 0:
        raise UnsupportedError(f"{call.op_type} with the scale {given}")
    return number(float(given))
