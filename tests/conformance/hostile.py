"""ONNX's node cases spoilt: absurd attributes and shapes, inputs left out, bytes lost.

``python -m tests.conformance.hostile --count 2000 --seed 1`` spoils so many.  ``optimize`` must
refuse each with a sentence or leave what it cannot take to ONNX Runtime, within bounds of time
and memory; what ONNX Runtime still runs must come out the same.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, numpy_helper

from tests.conformance.node_cases import cases
from tests.conformance.optimized import Job, Outcome, run_jobs

NUMBERS = (0, -1, 1, 2, 7, -(10**9), 10**9, 2**31, 2**62, -(2**63), 2**63 - 1)
FLAGS = ("keepdims", "saturate", "noop_with_empty_axes", "is_causal")
FLAGS += ("count_include_pad", "ceil_mode")
"""Whose values other than 0 and 1 mean nothing."""
FLOATS = (0.0, -1.0, 1e30, float("inf"), float("nan"))
Spoil = Callable[[onnx.ModelProto, random.Random], None]


def attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another value of an attribute, or another number of values."""
    nodes = [node for node in model.graph.node if node.attribute]
    if not nodes:
        return
    proto = rng.choice(rng.choice(nodes).attribute)
    match proto.type:
        case AttributeProto.INT:
            proto.i = rng.choice((0, 1) if proto.name in FLAGS else NUMBERS)
        case AttributeProto.FLOAT:
            proto.f = rng.choice(FLOATS)
        case AttributeProto.INTS:
            proto.ints[:] = another(list(proto.ints), NUMBERS, rng)
        case AttributeProto.FLOATS:
            proto.floats[:] = another(list(proto.floats), FLOATS, rng)
        case AttributeProto.STRING:
            proto.s = rng.choice([b"", b"\xff\xfe", b"nonsense", proto.s * 1000])


def another(values: list[Any], strange: Sequence[Any], rng: random.Random) -> list[Any]:
    """A list that differs in one value, or in how many there are."""
    match rng.randrange(4):
        case 0:
            return values[:-1]
        case 1:
            return [*values, rng.choice(strange)]
        case 2:
            return [rng.choice(strange) for _ in values]
        case _ if values:
            values[rng.randrange(len(values))] = rng.choice(strange)
    return values


def unknown_attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    """An attribute that the operator may have, of a type it never has, or none it knows."""
    names = (
        "axis",
        "axes",
        "group",
        "pads",
        "strides",
        "to",
        "keepdims",
        "perm",
        "mode",
        "new",
    )
    node = rng.choice(model.graph.node)
    name = rng.choice(names)
    value = rng.choice([[], [2**62], [-1] * 40, 2**62, "text", 0.5])
    for k in reversed(range(len(node.attribute))):
        if node.attribute[k].name == name:
            del node.attribute[k]
    kind = AttributeProto.INTS if value == [] else None
    node.attribute.append(onnx.helper.make_attribute(name, value, attr_type=kind))


def constant(model: onnx.ModelProto, rng: random.Random) -> None:
    """An input that is a constant, of strange values and another length."""
    inputs = [v for v in model.graph.input if v.type.HasField("tensor_type")]
    if not inputs:
        return
    value = rng.choice(inputs)
    kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    shape = rng.choice([(), (1,), (3,), (0,), (2, 2), (40,)])
    powers = any(node.op_type == "Pow" for node in model.graph.node)
    if kind.kind in "iu":
        numbers = (0, 1, 2, 7) if powers else NUMBERS  # an overflowing power is anything
        info = np.iinfo(kind)
        drawn = [min(max(rng.choice(numbers), info.min), info.max) for _ in range(40)]
    elif kind.kind == "f":
        drawn = [rng.choice(FLOATS) for _ in range(40)]
    else:
        return
    with np.errstate(over="ignore"):
        array = np.resize(np.array(drawn, kind), shape)
    model.graph.initializer.append(numpy_helper.from_array(array, value.name))
    if rng.random() < 0.8:
        model.graph.input.remove(value)


def shape_of_input(model: onnx.ModelProto, rng: random.Random) -> None:
    """A declared shape of another rank, or with absurd sizes."""
    values = [*model.graph.input, *model.graph.output]
    values = [v for v in values if v.type.HasField("tensor_type")]
    if not values:
        return
    shape = rng.choice(values).type.tensor_type.shape
    match rng.randrange(4):
        case 0 if shape.dim:
            rng.choice(shape.dim).dim_value = rng.choice(NUMBERS)
        case 1:
            shape.dim.add().dim_value = rng.choice(NUMBERS)
        case 2 if shape.dim:
            del shape.dim[-1]
        case _:
            for dim in shape.dim:
                dim.dim_param = rng.choice(["N", "", "a b", "0", "-1", "N" * 3000, "for", "é"])


def missing(model: onnx.ModelProto, rng: random.Random) -> None:
    """An input or output less, one more, or one that is left out."""
    node = rng.choice(model.graph.node)
    names = node.input if rng.random() < 0.7 else node.output
    match rng.randrange(4):
        case 0 if names:
            del names[-1]
        case 1 if names:
            names[rng.randrange(len(names))] = ""
        case 2:
            names.append(rng.choice(["", "unheard of", *node.input]))
        case _ if names:
            names[rng.randrange(len(names))] = rng.choice([*node.input, *node.output])


def element_type(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another element type of an input, an output or a constant."""
    values = [*model.graph.input, *model.graph.output]
    values = [v for v in values if v.type.HasField("tensor_type")]
    if values:
        rng.choice(values).type.tensor_type.elem_type = rng.choice([*range(28), 99, -1])


def opset(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another opset, domain or operator."""
    node = rng.choice(model.graph.node)
    match rng.randrange(4):
        case 0:
            model.opset_import[0].version = rng.choice([0, 1, 5, 7, 9, 13, 18, 21, 99, 2**62])
        case 1:
            node.domain = rng.choice(["com.microsoft", "ai.onnx", "nobody's", "tcfuse"])
        case 2:
            node.op_type = rng.choice(["", "Nobody", "Reshape", "Conv", "Softmax", "Gather"])
        case _:
            model.ir_version = rng.choice([0, 1, 3, 4, 99, 2**62])


SPOILS: tuple[Spoil, ...] = (
    *(attribute, attribute, attribute, unknown_attribute, constant, constant),
    *(shape_of_input, missing, element_type, opset),
)


def spoilt(case: Any, seed: int) -> Job:
    """A case with one or two things wrong in it, or with some of its bytes lost."""
    rng = random.Random(f"{case.name} {seed}")
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for _ in range(rng.choice([1, 1, 2])):
        if model.graph.node:
            rng.choice(SPOILS)(model, rng)
    data = bytearray(model.SerializeToString())
    match rng.randrange(12):
        case 0:
            del data[rng.randrange(len(data)) :]
        case 1:
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(len(data))] = rng.randrange(256)
    return Job(f"{case.name}#{seed}", bytes(data), case.data_sets, hostile=True)


def run_spoilt(count: int, seed: int, *, progress: bool = False) -> Outcome:
    """``count`` spoilt cases."""
    known = list(cases())
    rng = random.Random(seed)
    jobs = [spoilt(rng.choice(known), rng.randrange(10**6)) for _ in range(count)]
    return run_jobs(jobs, progress=progress)


def main() -> int:
    """Run spoilt cases and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one case, as it is told: NAME#SEED")
    arguments = parser.parse_args()
    if arguments.only:
        name, _, seed = arguments.only.partition("#")
        case = next(case for case in cases() if case.name == name)
        outcome = run_jobs([spoilt(case, int(seed))])
    else:
        outcome = run_spoilt(arguments.count, arguments.seed, progress=True)
    print(outcome.summary())  # noqa: T201
    return int(bool(outcome.bad))


if __name__ == "__main__":
    sys.exit(main())
