"""Random graphs of many operators as one kernel, against stock ONNX Runtime.

``python -m tests.conformance.random_graphs --count 300 --seed 7`` runs 300 of them.  Values
stay small and operators continuous, so that a difference is a fault and not a rounding.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper

from tcfuse.ort.inference import open_session, ort_errors
from tests.conformance.compiled import report, run_cases

SIZES = {"N": (3, 1, 17), "M": (20, 5, 1)}
"""What the named sizes are, run by run."""
Shape = tuple[int | str, ...]
UNARY = ("Tanh", "Sigmoid", "Abs", "Neg", "Relu", "Sin", "Softsign", "Erf", "LeakyRelu", "Elu")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")
REDUCE = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp", "ReduceL1")


class Graph:
    """A graph that grows by random nodes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.dtype = self.rng.choice([TensorProto.FLOAT, TensorProto.DOUBLE])
        self.numpy = np.float32 if self.dtype == TensorProto.FLOAT else np.float64
        self.named = self.rng.random() < 0.4
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: dict[str, Shape] = {}
        self.shapes: dict[str, Shape] = {}
        pool: list[int | str] = [1, 2, 3, 4, 7, 16, 18]
        pool += ["N", "M", "M"] if self.named else []
        main = tuple(self.rng.choice(pool) for _ in range(self.rng.randint(1, 4)))
        self.add_input(main)
        for _ in range(self.rng.randint(0, 2)):
            cut = main[self.rng.randint(0, len(main)) :]
            self.add_input(tuple(1 if self.rng.random() < 0.3 else s for s in cut))

    def add_input(self, shape: Shape) -> None:
        """One more input of the model."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.shapes[name] = shape

    def constant(self, array: np.ndarray) -> str:
        """A constant's name."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def whole(self, *values: int) -> str:
        """An int64 vector's name."""
        return self.constant(np.array(values, np.int64))

    def node(self, op_type: str, inputs: list[str], *shapes: Shape, **attributes: Any) -> None:
        """One more node with outputs of those shapes."""
        outputs = [f"t{len(self.nodes)}_{k}" for k in range(len(shapes))]
        self.nodes.append(helper.make_node(op_type, inputs, outputs, **attributes))
        self.shapes.update(zip(outputs, shapes, strict=True))

    def grow(self) -> None:
        """One random node on a random value, the newest most likely."""
        names = list(self.shapes)
        weights = [1 + k * k for k in range(len(names))]
        x = self.rng.choices(names, weights)[0]
        kinds = [self.unary, self.binary, self.binary, self.reduce, self.view, self.move]
        kinds += [self.softmax, self.unary, self.choose]
        self.rng.choice(kinds)(x)

    def unary(self, x: str) -> None:
        self.node(self.rng.choice(UNARY), [x], self.shapes[x])

    def binary(self, x: str) -> None:
        others = [n for n in self.shapes if broadcast(self.shapes[n], self.shapes[x])]
        y = self.rng.choice(others)
        pair = [x, y] if self.rng.random() < 0.5 else [y, x]
        shape = broadcast(self.shapes[x], self.shapes[y])
        assert shape is not None
        self.node(self.rng.choice(BINARY), pair, shape[0])

    def choose(self, x: str) -> None:
        """``Where`` between two values by the sign of a third; both agree where it is zero."""
        shape = self.shapes[x]
        below, half, chosen = (f"{stem}{len(self.nodes)}" for stem in ("below", "half", "w"))
        self.nodes += [
            helper.make_node("Less", [x, self.constant(np.array(0, self.numpy))], [below]),
            helper.make_node("Mul", [x, self.constant(np.array(0.5, self.numpy))], [half]),
            helper.make_node("Where", [below, half, x], [chosen]),
        ]
        self.shapes |= {half: shape, chosen: shape}

    def reduce(self, x: str) -> None:
        shape = self.shapes[x]
        if not shape:
            return
        axes = sorted(self.rng.sample(range(len(shape)), self.rng.randint(1, len(shape))))
        keep = self.rng.random() < 0.6
        result = tuple(
            1 if d in axes else s for d, s in enumerate(shape) if keep or d not in axes
        )
        op_type = self.rng.choice(REDUCE)
        self.node(op_type, [x, self.whole(*axes)], result, keepdims=int(keep))

    def softmax(self, x: str) -> None:
        shape = self.shapes[x]
        if not shape:
            return
        if self.rng.random() < 0.6:
            self.node("Softmax", [x], shape, axis=self.rng.randrange(len(shape)))
            return
        scale = shape[-1:]
        if not isinstance(scale[0], int):
            return
        weight = np.random.default_rng(len(self.nodes)).standard_normal(scale)
        self.node(
            "LayerNormalization",
            [
                x,
                self.constant(weight.astype(self.numpy)),
                self.constant(weight.astype(self.numpy)),
            ],
            shape,
        )

    def view(self, x: str) -> None:
        shape = self.shapes[x]
        match self.rng.randrange(3):
            case 0 if len(shape) > 1:
                k = self.rng.randrange(len(shape) - 1)
                a, b = shape[k], shape[k + 1]
                if isinstance(a, str) or isinstance(b, str):
                    return
                merged = (*shape[:k], a * b, *shape[k + 2 :])
                self.reshape(x, merged)
            case 1 if shape:
                k = self.rng.randrange(len(shape))
                size = shape[k]
                if isinstance(size, str):
                    return
                parts = [(f, size // f) for f in (2, 3, 4) if size % f == 0]
                if parts:
                    self.reshape(x, (*shape[:k], *self.rng.choice(parts), *shape[k + 1 :]))
            case _:
                k = self.rng.randrange(len(shape) + 1)
                self.node("Unsqueeze", [x, self.whole(k)], (*shape[:k], 1, *shape[k:]))

    def reshape(self, x: str, shape: Shape) -> None:
        if sum(isinstance(s, str) for s in shape) > 1:
            return
        target = [-1 if isinstance(s, str) else s for s in shape]
        self.node("Reshape", [x, self.whole(*target)], shape)

    def move(self, x: str) -> None:
        shape = self.shapes[x]
        if not shape or len(shape) > 5:
            return
        axis = self.rng.randrange(len(shape))
        size = shape[axis]
        match self.rng.randrange(7):
            case 0 | 1:
                perm = self.rng.sample(range(len(shape)), len(shape))
                self.node("Transpose", [x], tuple(shape[p] for p in perm), perm=perm)
            case 2 if isinstance(size, int) and size > 2:
                step = self.rng.choice([1, 2, -1])
                first, last = (1, size) if step > 0 else (size - 2, -(2**31))
                count = (size - 1 + abs(step) - 1) // abs(step)
                result = (*shape[:axis], count, *shape[axis + 1 :])
                where = [self.whole(v) for v in (first, last, axis, step)]
                self.node("Slice", [x, *where], result)
            case 3 if isinstance(size, int):
                y = self.rng.choice([n for n in self.shapes if self.shapes[n] == shape])
                result = (*shape[:axis], 2 * size, *shape[axis + 1 :])
                self.node("Concat", [x, y], result, axis=axis)
            case 4 if isinstance(size, int) and size > 1:
                at = self.rng.randrange(1, size)
                parts = [(*shape[:axis], n, *shape[axis + 1 :]) for n in (at, size - at)]
                self.node("Split", [x, self.whole(at, size - at)], *parts, axis=axis)
            case 5 if isinstance(size, int):
                index = [self.rng.randrange(-size, size) for _ in range(3)]
                result = (*shape[:axis], 3, *shape[axis + 1 :])
                self.node("Gather", [x, self.whole(*index)], result, axis=axis)
            case 6 if isinstance(size, int):
                pads = [0] * (2 * len(shape))
                pads[axis], pads[axis + len(shape)] = 1, 2
                result = (*shape[:axis], size + 3, *shape[axis + 1 :])
                mode = self.rng.choice(["constant", "edge"])
                self.node("Pad", [x, self.whole(*pads)], result, mode=mode)

    def model(self) -> onnx.ModelProto:
        """The whole model; values nobody reads are outputs, and some others."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output if name in self.shapes]
        kept = [n for n in made if n not in read or self.rng.random() < 0.15]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info(n, self.dtype, s) for n, s in self.inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in kept],
            self.constants,
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
        )


def broadcast(a: Shape, b: Shape) -> tuple[Shape] | None:
    """The joint shape of two, in a tuple of its own; ``None`` when there is none."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    result: list[int | str] = []
    for x, y in pairs:
        if x != y and x != 1 and y != 1:
            return None
        result.append(y if x == 1 else x)
    return (tuple(result),)


def case_of(seed: int, size: int) -> Any | None:
    """A random graph with ONNX Runtime's answers; ``None`` if it has none."""
    graph = Graph(seed)
    while len(graph.nodes) < size:
        graph.grow()
    model = graph.model()
    try:
        session = open_session(ir.from_proto(model), optimized=False)
    except ort_errors():  # an operator that it has for floats only
        return None
    sets = []
    rng = np.random.default_rng(seed)
    for k in range(3 if graph.named else 1):
        sizes = {name: values[k] for name, values in SIZES.items()}
        feeds = []
        for shape in graph.inputs.values():
            known = tuple(sizes[s] if isinstance(s, str) else s for s in shape)
            feeds.append(np.asarray(rng.standard_normal(known)).astype(graph.numpy))
        named = dict(zip(graph.inputs, feeds, strict=True))
        sets.append((feeds, session.run(None, named)))
    return SimpleNamespace(name=f"seed{seed}", model=model, data_sets=sets)


def random_cases(count: int, seed: int, size: int) -> Iterator[Any]:
    """``count`` random graphs of about ``size`` nodes."""
    made = (case_of(seed * 100_000 + k, 3 + (k % size)) for k in range(count))
    return (case for case in made if case is not None)


def main() -> int:
    """Run random graphs and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--refusals", action="store_true", help="list what was refused")
    arguments = parser.parse_args()
    items = random_cases(arguments.count, arguments.seed, arguments.size)
    outcome = run_cases(items, progress=True)
    return report(outcome, refusals=arguments.refusals)


if __name__ == "__main__":
    sys.exit(main())
