"""The activations that recurrent layers name, with the numbers they take from two lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from op_library._text import number
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import OpCall

Activation: TypeAlias = Callable[[str], str]
"""From the text of an operand, which may stand in it several times, to that of the value."""


@dataclass(frozen=True, slots=True)
class _Row:
    """An activation: a template, and the values of its parameters where none are given."""

    value: str
    alpha: float | None = None
    beta: float | None = None


_TABLE = {
    "affine": _Row("{alpha} * {x} + {beta}", 1.0, 0.0),
    "elu": _Row("{x} >= 0 ? {x} : {alpha} * expm1({x})", 1.0),
    "hardsigmoid": _Row("min(max({alpha} * {x} + {beta}, 0), 1)", 0.2, 0.5),
    "leakyrelu": _Row("{x} >= 0 ? {x} : {alpha} * {x}", 0.01),
    "relu": _Row("max({x}, 0)"),
    "scaledtanh": _Row("{alpha} * tanh({beta} * {x})", 1.0, 1.0),
    "sigmoid": _Row("sigmoid({x})"),
    "softplus": _Row("max({x}, 0) + log1p(exp(-abs({x})))"),
    "softsign": _Row("{x} / (1 + abs({x}))"),
    "tanh": _Row("tanh({x})"),
    "thresholdedrelu": _Row("{x} > {alpha} ? {x} : 0", 1.0),
}


def activations(call: OpCall, usual: Sequence[str], directions: int) -> list[Activation]:
    """The activations of all directions, in order.

    The numbers are consumed in the order of the activations that have use for one.

    Args:
        call: The node.
        usual: Those of one direction where the node names none.
        directions: Number of directions.

    Raises:
        UnsupportedError: There are too few of them, or one is not known.
    """
    names = list(call.attributes.get("activations", ())) or [*usual] * directions
    if len(names) < len(usual) * directions:
        raise UnsupportedError(f"{call.op_type} with {len(names)} activations")
    alphas = iter(call.attributes.get("activation_alpha", ()))
    betas = iter(call.attributes.get("activation_beta", ()))
    found: list[Activation] = []
    for name in names:
        row = _TABLE.get(str(name).lower())
        if row is None:
            raise UnsupportedError(f"{call.op_type} with activation {name!r}")
        words = {}
        if row.alpha is not None:
            words["alpha"] = number(float(np.float32(next(alphas, row.alpha))))
        if row.beta is not None:
            words["beta"] = number(float(np.float32(next(betas, row.beta))))
        found.append(_filled(row.value, words))
    return found


def _filled(template: str, words: dict[str, str]) -> Activation:
    return lambda operand: template.format(x=operand, **words)
