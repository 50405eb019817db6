"""RNN, GRU and LSTM over a few steps, written out one after the other.

Each step is a product with the state and a handful of pointwise operators.  A state that ends
before its sequence keeps its value, and what it gives from there on is 0.

Source: https://onnx.ai/onnx/operators/onnx__LSTM.html and its siblings; where the text leaves
it open (coupled gates, what is clipped, how ``activation_alpha`` is consumed), ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from op_library._activations import activations
from op_library._recurrence import POINT, Direction, is_batchwise
from op_library._text import at, definition, needed, plus, select
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType

MOST_STEPS = 32
"""Steps beyond which a recurrence is not written out."""

Step = Callable[[Direction, int, int], None]


def rnn_step(layer: Direction, step: int, time: int) -> None:
    """``H = f(X W + H R + biases)``."""
    value = layer.given(0, time) + layer.bias(0, recurrent=True)
    if layer.state:
        value += f" + {layer.product(f'Q{step}_', layer.state, range(1))}(b, h)"
    new = layer.activated(0, f"A{step}_", value)
    layer.state = layer.keep(f"H{step}_", new, layer.state, time)


def gru_step(layer: Direction, step: int, time: int) -> None:
    """``H = (1 - z) h + z H``."""
    state, linear = layer.state, bool(layer.call.attributes.get("linear_before_reset", 0))
    both = layer.product(f"Q{step}_", state, range(2)) if state else ""

    def gate(k: int, name: str) -> str:
        value = layer.given(k, time) + layer.bias(k, recurrent=True)
        value += f" + {both}(b, {plus('h', layer.offset(k))})" if both else ""
        return at(layer.activated(0, f"{name}{step}_", value), POINT)

    update, reset = gate(0, "Z"), gate(1, "G")
    value, bias = layer.given(2, time), layer.bias(2, recurrent=True)
    if linear:
        inner = f"{layer.product(f'S{step}_', state, range(2, 3))}(b, h)" if state else "0"
        value += f" + {reset} * ({inner}{bias})" if state or bias else ""
    elif state:
        seen = layer.put(f"S{step}_", f"{reset} * {at(state, POINT)}")
        value += f" + {layer.product(f'T{step}_', seen, range(2, 3))}(b, h){bias}"
    else:
        value += bias
    new = at(layer.activated(1, f"A{step}_", value), POINT)
    old = f" + {update} * {at(state, POINT)}" if state else ""
    mixed = layer.put(f"M{step}_", f"(1 - {update}) * {new}{old}")
    layer.state = layer.keep(f"H{step}_", mixed, state, time)


def lstm_step(layer: Direction, step: int, time: int) -> None:
    """``C = f C + i c`` and ``H = o h(C)``."""
    state, cell = layer.state, layer.cell
    all_gates = layer.product(f"Q{step}_", state, range(4)) if state else ""

    def gate(k: int, function: int, name: str, seen: str = "") -> str:
        value = layer.given(k, time) + layer.bias(k, recurrent=True) + seen
        value += f" + {all_gates}(b, {plus('h', layer.offset(k))})" if all_gates else ""
        return at(layer.activated(function, f"{name}{step}_", value), POINT)

    enters = gate(0, 0, "I", layer.peephole(0, cell))
    fresh = gate(3, 1, "N")
    value = f"{enters} * {fresh}"
    if cell:
        coupled = bool(layer.call.attributes.get("input_forget", 0))
        stays = f"(1 - {enters})" if coupled else gate(2, 0, "F", layer.peephole(2, cell))
        value = f"{stays} * {at(cell, POINT)} + {value}"
    inner = layer.put(f"C{step}_", value)
    leaves = gate(1, 0, "O", layer.peephole(1, inner))
    new = layer.put(f"M{step}_", f"{leaves} * ({layer.functions[2](at(inner, POINT))})")
    layer.state = layer.keep(f"H{step}_", new, state, time)
    layer.cell = layer.keep(f"K{step}_", inner, cell, time)


@dataclass(frozen=True, slots=True)
class Layer:
    """A recurrent operator.

    Attributes:
        gates: Number of gates.
        functions: Its activations where the node names none.
        step: Writes one step.
    """

    gates: int
    functions: tuple[str, ...]
    step: Step


LAYERS = {
    "RNN": Layer(1, ("Tanh",), rnn_step),
    "GRU": Layer(3, ("Sigmoid", "Tanh"), gru_step),
    "LSTM": Layer(4, ("Sigmoid", "Tanh", "Tanh"), lstm_step),
}


@onnx_op("RNN", since=7, kind=Kind.CONTRACTION)
@onnx_op("GRU", since=7, kind=Kind.CONTRACTION)
@onnx_op("LSTM", since=7, kind=Kind.CONTRACTION)
def recurrent(call: OpCall) -> str:
    """A recurrent layer in one or both directions."""
    layer, x, r = LAYERS[call.op_type], needed(call, 0), needed(call, 2)
    steps = x.shape[1 if is_batchwise(call) else 0]
    if not isinstance(steps, int) or not 0 < steps <= MOST_STEPS:
        raise UnsupportedError(f"{call.op_type} over {steps} steps is not written out")
    named, initial = ("X", "W", "R", "B", "Lengths", "H", "C", "P"), call.input(6)
    directions = direction_of(call)
    functions = activations(call, layer.functions, len(directions))
    body: list[str] = []
    for k, is_reversed in enumerate(directions):
        width = len(layer.functions)
        one = Direction(
            call, layer.gates, k, functions[k * width : (k + 1) * width], r.shape[2]
        )
        one.project()
        place = f"(b, {k}, h)" if is_batchwise(call) else f"({k}, b, h)"
        one.state = one.put("HI", f"H{place}") if call.input(5) else ""
        one.cell = one.put("CI", f"C{place}") if initial else ""
        for step in range(steps):
            time = steps - 1 - step if is_reversed else step
            layer.step(one, step, time)
            one.body += outputs_of_step(one, time)
        one.body += last_outputs(one)
        body += one.body
    params = dict(zip(named, call.inputs, strict=False))
    returns: dict[str, TensorType | None] = dict(
        zip(("Y", "YH", "YC"), call.outputs, strict=False)
    )
    return definition(call, params, returns, body)


def direction_of(call: OpCall) -> tuple[bool, ...]:
    """For each direction, whether it starts at the end.

    Raises:
        UnsupportedError: The attribute has another value.
    """
    known = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    name = str(call.attributes.get("direction", "forward"))
    if name not in known:
        raise UnsupportedError(f"{call.op_type} in direction {name!r}")
    return known[name]


def outputs_of_step(layer: Direction, time: int) -> Iterator[str]:
    """The statement that stores the state at one time, 0 after the end of the sequence."""
    if not layer.call.outputs or not layer.call.outputs[0]:
        return
    value = at(layer.state, POINT)
    if layer.call.input(4):
        value = select(f"{time} < Lengths(b)", value, "0")
    point = "b, t, d, h" if is_batchwise(layer.call) else "t, d, b, h"
    yield f"  Y({point}) = {value} where {_ranges(layer, point, time)}"


def last_outputs(layer: Direction) -> Iterator[str]:
    """The statements that store the last states."""
    point = "b, d, h" if is_batchwise(layer.call) else "d, b, h"
    for k, (name, state) in enumerate((("YH", layer.state), ("YC", layer.cell)), 1):
        if k < len(layer.call.outputs) and layer.call.outputs[k]:
            value = at(state, POINT)
            yield f"  {name}({point}) = {value} where {_ranges(layer, point)}"


def _ranges(layer: Direction, point: str, time: int = 0) -> str:
    """The ranges of a statement that writes one direction, at one time."""
    known = {
        "t": f"{time}:{time + 1}",
        "d": f"{layer.number}:{layer.number + 1}",
        "b": f"0:{layer.batch}",
        "h": f"0:{layer.hidden}",
    }
    return ", ".join(f"{name} in {known[name]}" for name in point.split(", "))
