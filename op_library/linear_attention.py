"""Linear attention: a state that each step decays, corrects, adds to and reads.

The steps are written out one after the other, so their number must be known and small.

Source: https://onnx.ai/onnx/operators/onnx__LinearAttention.html and ONNX Runtime's
docs/ContribOperators.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from op_library._heads import Heads, heads_of, shared_head
from op_library._statistics import first_output, output
from op_library._text import (
    Loops,
    at,
    definition,
    needed,
    number,
    require_defaults,
    require_equal,
    statement,
    subscript,
)
from op_library.slicing import choose
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType

MICROSOFT = "com.microsoft"
MOST_STEPS = 32
"""Steps that are written out; scheduling is cubic in the statements."""
RULES = ("linear", "gated", "delta", "gated_delta")
PAST, DECAY, BETA = 3, 4, 5


@dataclass(frozen=True, slots=True)
class Recurrence:
    """What a step reads.

    Attributes:
        shared: The head of the keys that head ``h`` of the queries uses.
        decay: Of channel ``d`` of head ``h`` of the keys at a step, as a template; ``None``
            when the state does not decay.
        beta: How far a head is corrected at a step, as a template; ``None`` when it is not.
        past: Whether there is a state before the first step.
    """

    queries: Heads
    keys: Heads
    values: Heads
    shared: str
    decay: str | None
    beta: str | None
    past: bool

    @property
    def state(self) -> Loops:
        """The loops of a state: batch, head of the keys, channel of a key, of a value."""
        keys, values = self.keys, self.values
        return ("b", keys.batch), ("h", keys.heads), ("d", keys.width), ("m", values.width)

    def step(self, t: int, scale: str) -> list[str]:
        """Statements that compute ``State<t>``, and ``Out<t>``, what the queries read of it."""
        batch, head, inner, column = self.state
        key, value = self.keys.at("b", "h", str(t), "d"), self.values.at("b", "h", str(t), "m")
        before = f"State{t - 1}(b, h, d, m)" if t else "Past(b, h, d, m)"
        is_first = t == 0 and not self.past
        body = []
        if self.decay is not None and not is_first:
            fade = f"exp({self.decay.format(t=t)})"
            body.append(statement(f"Fade{t}", (batch, head, inner), fade))
            before = f"{before} * Fade{t}(b, h, d)"
        if self.beta is not None:
            if not is_first:
                known = f"{before} * {key}"
                body.append(
                    statement(
                        *(f"Known{t}", (batch, head, column), known),
                        assign="+=!",
                        reduce=(inner,),
                    )
                )
                value = f"({value} - Known{t}(b, h, m))"
            value = f"{self.beta.format(t=t)} * {value}"
        added = f"float({key}) * ({value})"
        after = added if is_first else f"{before} + {added}"
        body.append(statement(f"State{t}", self.state, after))
        query = f"{self.queries.at('b', 'h', str(t), 'd')} * {scale}"
        read = f"{query} * State{t}(b, {self.shared}, d, m)"
        heads = (batch, ("h", self.queries.heads), column)
        body.append(statement(f"Out{t}", heads, read, assign="+=!", reduce=(inner,)))
        return body

    def read_at(self, t: int) -> str:
        """What the queries read at a step, with the heads side by side in ``c``."""
        width = self.values.width
        if self.queries.heads == 1:
            return f"Out{t}(b, 0, c)"
        return f"Out{t}(b, c / {width}, c % {width})"


@onnx_op("LinearAttention", since=27, kind=Kind.CONTRACTION)
@onnx_op("LinearAttention", since=1, kind=Kind.CONTRACTION, domain=MICROSOFT)
def linear_attention(call: OpCall) -> str:
    """``S = exp(decay) S + k (beta (v - S' k))'`` at each step, and ``scale S' q`` of it.

    Shapes:
        Q, K, V: ``(batch, steps, heads * width)``; a head of K and V may serve several of Q.
        Past, State: ``(batch, heads of K, width of K, width of V)``.
        Decay: ``(batch, steps, heads of K * width of K)``, or one for each head.
        Beta: ``(batch, steps, heads of K)``, or one for all heads.
    """
    require_defaults(call, {"state_window": 0})
    recurrence = recurrence_of(call)
    steps = recurrence.queries.steps
    if not isinstance(steps, int) or not 0 < steps <= MOST_STEPS:
        raise UnsupportedError(f"LinearAttention over {steps} steps")
    width = recurrence.queries.width
    given = float(call.attributes.get("scale", 0))
    if not given and not isinstance(width, int):
        raise UnsupportedError(f"LinearAttention of heads of width {width}")
    scale = number(given or 1 / math.sqrt(int(width)))
    body = [text for t in range(steps) for text in recurrence.step(t, scale)]
    y, state = first_output(call), output(call, 1)
    point = tuple(zip("btc", y.shape, strict=True))
    pieces = [(t, recurrence.read_at(t)) for t in range(steps)]
    body.append(statement("Y", point, choose("t", pieces)))
    if state is not None:
        last = f"State{steps - 1}(b, h, d, m)"
        body.append(statement("State", recurrence.state, last))
    inputs = ("Q", "K", "V", "Past", "Decay", "Beta")
    params = {name: call.input(k) for k, name in enumerate(inputs)}
    return definition(call, params, {"Y": y, "State": state}, body)


def recurrence_of(call: OpCall) -> Recurrence:
    """What the steps of a node read.

    Raises:
        UnsupportedError: Inputs do not fit each other, or the rule.
    """
    rule = call.attributes.get("update_rule", "gated_delta")
    decay, beta = call.input(DECAY), call.input(BETA)
    if rule not in RULES:
        raise UnsupportedError(f"LinearAttention by the rule {rule!r}")
    if (decay is None) == ("gated" in rule) or (beta is None) == ("delta" in rule):
        raise UnsupportedError(f"LinearAttention by the rule {rule!r} with other inputs")
    count = int(call.attributes.get("kv_num_heads", 0))
    queries = packed(call, 0, "Q", int(call.attributes.get("q_num_heads", 0)))
    keys, values = packed(call, 1, "K", count), packed(call, 2, "V", count)
    for size, other in (
        (keys.batch, queries.batch),
        (values.batch, queries.batch),
        (keys.steps, queries.steps),
        (values.steps, queries.steps),
        (keys.width, queries.width),
    ):
        require_equal(size, other)
    return Recurrence(
        queries,
        keys,
        values,
        shared_head(call, queries.heads, keys.heads, "h"),
        None if decay is None else of_each_key(call, decay, keys),
        None if beta is None else of_each_head(beta, keys),
        call.input(PAST) is not None,
    )


def packed(call: OpCall, position: int, name: str, count: int) -> Heads:
    """An input with its heads side by side.

    Raises:
        UnsupportedError: It has another rank than 3.
    """
    type_ = needed(call, position)
    if type_.rank != 3:
        raise UnsupportedError(f"LinearAttention of rank {type_.rank}")
    return heads_of(call, name, type_, count)


def of_each_key(call: OpCall, decay: TensorType, keys: Heads) -> str:
    """The decay of a channel of a head at a step, as a template."""
    if decay.shape[-1] == keys.heads:
        return "Decay(b, {t}, h)"
    channels = packed(call, DECAY, "Decay", int(keys.heads))
    require_equal(channels.width, keys.width)
    return channels.at("b", "h", "{t}", "d")


def of_each_head(beta: TensorType, keys: Heads) -> str:
    """The correction of a head at a step, as a template."""
    if beta.rank != 3:
        raise UnsupportedError(f"LinearAttention with a beta of rank {beta.rank}")
    return at("Beta", ("b", "{t}", subscript(beta.shape[-1], ("h", keys.heads))))
