"""Causal convolution that hands the steps before the next ones from call to call.

Source: https://onnx.ai/onnx/operators/onnx__CausalConvWithState.html and ONNX Runtime's
docs/ContribOperators.md.
"""

from __future__ import annotations

from op_library._statistics import first_output, output
from op_library._text import (
    at,
    definition,
    minus,
    needed,
    plus,
    require_defaults,
    require_equal,
    select,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op

MICROSOFT = "com.microsoft"
PLAIN = {
    "ndim": 1,
    "channels_last": 0,
    "state_window": 0,
    "state_update_capacity": 0,
    "state_channels_last": -1,
    "state_length": 0,
    "input_channel_offset": 0,
    "input_channels": 0,
}
"""Attributes that only ONNX Runtime's operator has, and their defaults."""


@onnx_op("CausalConvWithState", since=27, kind=Kind.CONTRACTION)
@onnx_op("CausalConvWithState", since=1, kind=Kind.CONTRACTION, domain=MICROSOFT)
def causal_convolution(call: OpCall) -> str:
    """Each channel convolved with taps that end at the step; the state is what comes before.

    Shapes:
        X: ``(batch, channels, steps)``.
        W: ``(channels, 1, taps)``.
        B: ``(channels)``.
        Past: ``(batch, channels, (taps - 1) * dilation)``, zeros when it is absent.
        State: As Past: the last steps of Past and X.
    """
    require_defaults(call, PLAIN)
    x, w, b, past = needed(call, 0), needed(call, 1), call.input(2), call.input(3)
    if x.rank != 3 or w.rank != 3 or not isinstance(w.shape[2], int):
        raise UnsupportedError(f"{call.op_type} of {x} with {w}")
    taps, dilation = w.shape[2], int(call.attributes.get("dilation", 1))
    before = (taps - 1) * dilation
    require_equal(w.shape[0], x.shape[1])
    point = tuple(zip("bcs", x.shape, strict=True))

    def padded(step: str) -> str:
        inside = at("X", ("b", "c", minus(step, before)))
        if before == 0:
            return inside
        return select(
            f"{step} < {before}", "0" if past is None else f"Past(b, c, {step})", inside
        )

    tap = "k" if dilation == 1 else f"{dilation} * k"
    value = f"({padded(f's + {tap}')}) * W(c, 0, k)"
    sum_ = "Sum(b, c, s)" if b is None else "(Sum(b, c, s) + B(c))"
    y, state = first_output(call), output(call, 1)
    body = [
        statement("Sum", point, value, assign="+=!", reduce=(("k", taps),)),
        statement("Y", point, activated(call, sum_)),
    ]
    if state is not None:
        require_equal(state.shape[2], before)
        kept = padded(plus("s", x.shape[2]))
        body.append(statement("State", tuple(zip("bcs", state.shape, strict=True)), kept))
    params = {"X": x, "W": w, "B": b, "Past": past}
    return definition(call, params, {"Y": y, "State": state}, body)


def activated(call: OpCall, value: str) -> str:
    """``value`` under the operator's activation.

    Raises:
        UnsupportedError: There is no such activation.
    """
    activation = call.attributes.get("activation", "none")
    if activation == "none":
        return value
    if activation not in ("silu", "swish"):
        raise UnsupportedError(f"{call.op_type} with the activation {activation!r}")
    return f"{value} * sigmoid({value})"
