"""One step of a gradient descent: Adagrad, Adam and Momentum.

The inputs are a rate ``R``, the number ``T`` of steps so far, and then all tensors, all
gradients and all states of each kind; the outputs are the new tensors and states.

Source: https://onnx.ai/onnx/operators/onnx_aionnxpreviewtraining_Adagrad.html and its siblings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from op_library._text import (
    at,
    attribute,
    definition,
    loops,
    names,
    needed,
    require_equal,
    statement,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op
from tcfuse.types import TensorType

DOMAIN = "ai.onnx.preview.training"
REGULARIZED = {"gradient": "{norm_coefficient} * {X} + {G}"}


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer as templates, in which attributes and inputs stand under their names.

    Attributes:
        attributes: Float attributes with their defaults.
        lets: Named subexpressions of the results, which may use ``rate``.
        results: The new tensor ``X`` and its new states, in the order of the outputs.
        rate: The rate of this step, computed in ``double``.
    """

    attributes: Mapping[str, float]
    lets: Mapping[str, str]
    results: Mapping[str, str]
    rate: str = "{R}"

    def lower(self, call: OpCall) -> str:
        """The definition of a node: a step of each tensor.

        Raises:
            UnsupportedError: The inputs are not a rate, a count and groups of tensors.
        """
        groups = ("X", "G", *list(self.results)[1:])
        count, rest = divmod(len(call.inputs) - 2, len(groups))
        if rest or len(call.outputs) != count * len(self.results):
            raise UnsupportedError(f"{call.op_type} with {len(call.inputs)} inputs")
        params: dict[str, TensorType | None] = {
            name: needed(call, k) for k, name in enumerate(["R", "T", *numbered(groups, count)])
        }
        returns = dict(zip(numbered(self.results, count, "New"), call.outputs, strict=True))
        words = {name: attribute(call, name, value) for name, value in self.attributes.items()}
        words |= {name: f"double({first_element(call, k)})" for k, name in enumerate("RT")}
        body = [statement("Rate", (), self.rate.format(**words))]
        for k in range(count):
            point = loops(needed(call, 2 + k).shape)
            dtype = needed(call, 2 + k).dtype
            for name in groups:
                type_ = params[f"{name}{k}"]
                if type_ is None or type_.dtype is not dtype or type_.rank != len(point):
                    raise UnsupportedError(f"{call.op_type} of tensors of several types")
                for size, (_, extent) in zip(type_.shape, point, strict=True):
                    require_equal(size, extent)
                words[name] = at(f"{name}{k}", names(point))
            lets = {name: text.format(**words) for name, text in self.lets.items()}
            lets = {"rate": f"{dtype.tc}(Rate)", **lets}
            body += [
                statement(f"New{name}{k}", point, text.format(**words), lets=lets)
                for name, text in self.results.items()
                if returns[f"New{name}{k}"]
            ]
        return definition(call, params, returns, body)


def numbered(groups: Iterable[str], count: int, prefix: str = "") -> list[str]:
    """The names of ``count`` tensors of each group, group by group."""
    return [f"{prefix}{name}{k}" for name in groups for k in range(count)]


def first_element(call: OpCall, k: int) -> str:
    """The only element of one of the first inputs, which are ``R`` and ``T``.

    Raises:
        UnsupportedError: It is no scalar.
    """
    type_ = needed(call, k)
    if any(size != 1 for size in type_.shape):
        raise UnsupportedError(f"input {k} of {call.op_type} is {type_}")
    return at("RT"[k], ["0"] * type_.rank)


TABLE: dict[str, Optimizer] = {
    "Adagrad": Optimizer(
        {"norm_coefficient": 0.0, "decay_factor": 0.0, "epsilon": 1e-6},
        {**REGULARIZED, "squares": "{H} + gradient * gradient"},
        {"X": "{X} - rate * gradient / (sqrt(squares) + {epsilon})", "H": "squares"},
        rate="{R} / (1 + {T} * {decay_factor})",
    ),
    "Adam": Optimizer(
        {
            "norm_coefficient": 0.0,
            "norm_coefficient_post": 0.0,
            "alpha": 0.9,
            "beta": 0.999,
            "epsilon": 1e-6,
        },
        {
            **REGULARIZED,
            "average": "{alpha} * {V} + (1 - {alpha}) * gradient",
            "squares": "{beta} * {H} + (1 - {beta}) * gradient * gradient",
            "moved": "{X} - rate * average / (sqrt(squares) + {epsilon})",
        },
        {"X": "(1 - {norm_coefficient_post}) * moved", "V": "average", "H": "squares"},
        rate="{T} > 0 ? {R} * sqrt(1 - pow({beta}, {T})) / (1 - pow({alpha}, {T})) : {R}",
    ),
}
for _op_type, _optimizer in TABLE.items():
    onnx_op(_op_type, since=1, kind=Kind.ELEMENTWISE, domain=DOMAIN)(_optimizer.lower)


@onnx_op("Momentum", since=1, kind=Kind.ELEMENTWISE, domain=DOMAIN)
def momentum(call: OpCall) -> str:
    """A step along the averaged gradient, or along where that will be: Nesterov's."""
    mode = call.attributes.get("mode")
    if mode not in ("standard", "nesterov"):
        raise UnsupportedError(f"Momentum in mode {mode!r}")
    along = "velocity" if mode == "standard" else "(gradient + {alpha} * velocity)"
    velocity = "{alpha} * {V} + ({T} > 0 ? {beta} : 1) * gradient"
    return Optimizer(
        {"norm_coefficient": 0.0, "alpha": 0.0, "beta": 0.0},
        {**REGULARIZED, "velocity": velocity},
        {"X": f"{{X}} - rate * {along}", "V": "velocity"},
    ).lower(call)
