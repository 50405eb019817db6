"""One direction of a recurrent layer while its steps are written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from op_library._activations import Activation
from op_library._text import at, needed, number, plus, select
from tcfuse.opdef import OpCall
from tcfuse.types import Size

POINT = ("b", "h")


def is_batchwise(call: OpCall) -> bool:
    """Whether the batch is the first axis of inputs and outputs."""
    return bool(call.attributes.get("layout", 0))


@dataclass(slots=True)
class Direction:
    """One direction of a recurrent layer while its steps are written.

    Attributes:
        call: The node.
        gates: Number of gates.
        number: 0, or 1 for the second direction.
        functions: Its activations.
        hidden: Size of the state.
        state: Name of the hidden state so far; empty while it is 0.
        cell: The same of an LSTM's cell.
        body: The statements so far.
    """

    call: OpCall
    gates: int
    number: int
    functions: Sequence[Activation]
    hidden: Size
    state: str = ""
    cell: str = ""
    body: list[str] = field(default_factory=list)

    @property
    def batch(self) -> Size:
        """Number of sequences."""
        return needed(self.call, 0).shape[0 if is_batchwise(self.call) else 1]

    def offset(self, gate: int) -> Size:
        """The first row of a gate."""
        return gate * self.hidden if isinstance(self.hidden, int) else f"{gate} * {self.hidden}"

    def put(self, name: str, value: str) -> str:
        """Store ``value`` at each ``(b, h)`` as ``name`` of this direction; the tensor."""
        name = f"{name}{self.number}"
        ranges = f"b in 0:{self.batch}, h in 0:{self.hidden}"
        self.body.append(f"  {at(name, POINT)} = {value} where {ranges}")
        return name

    def project(self) -> None:
        """The inputs of all gates at all times."""
        x = needed(self.call, 0)
        batchwise = is_batchwise(self.call)
        steps, rows = x.shape[1 if batchwise else 0], self.offset(self.gates)
        read = "X(b, t, i)" if batchwise else "X(t, b, i)"
        self.body.append(
            f"  In{self.number}(t, b, g) +=! {read} * W({self.number}, g, i) where "
            f"t in 0:{steps}, b in 0:{self.batch}, g in 0:{rows}, i in 0:{x.shape[2]}"
        )

    def product(self, name: str, state: str, gates: range) -> str:
        """The product of ``state`` with the weights of some gates."""
        name, first = f"{name}{self.number}", plus("g", self.offset(gates.start))
        rows = self.offset(len(gates))
        self.body.append(
            f"  {name}(b, g) +=! {state}(b, k) * R({self.number}, {first}, k) where "
            f"b in 0:{self.batch}, g in 0:{rows}, k in 0:{self.hidden}"
        )
        return name

    def given(self, gate: int, time: int) -> str:
        """What the input gives to a gate, its bias included."""
        row = plus("h", self.offset(gate))
        return f"In{self.number}({time}, b, {row})" + self.bias(gate)

    def bias(self, gate: int, *, recurrent: bool = False) -> str:
        """The addition of a gate's bias, of the input's or of the state's product."""
        if not self.call.input(3):
            return ""
        row = plus("h", self.offset(gate + self.gates * recurrent))
        return f" + B({self.number}, {row})"

    def peephole(self, gate: int, cell: str) -> str:
        """The addition of what a gate sees of the cell."""
        if not self.call.input(7) or not cell:
            return ""
        row = plus("h", self.offset(gate))
        return f" + P({self.number}, {row}) * {at(cell, POINT)}"

    def activated(self, function: int, name: str, value: str) -> str:
        """An activation of ``value``, which is clipped before, stored as ``name``."""
        clip = self.call.attributes.get("clip")
        if clip:
            most = number(float(np.float32(clip)))
            value = f"min(max({value}, -{most}), {most})"
        before = self.put(f"{name}_in", value)
        return self.put(name, self.functions[function](at(before, POINT)))

    def keep(self, name: str, new: str, old: str, time: int) -> str:
        """``new`` while the sequence lasts and ``old`` after it, stored as ``name``."""
        if not self.call.input(4):
            return new
        kept = at(old, POINT) if old else "0"
        return self.put(name, select(f"{time} < Lengths(b)", at(new, POINT), kept))
