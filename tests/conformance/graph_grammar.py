"""Random graphs that grow node by node: which operators, on what, with which attributes.

Each step is a method named in ``STEPS``: it draws operands among the values there are and adds
a node, or raises ``DiscardError``.  Operators that jump (rounding, comparisons, casts to
integers) take only values that nothing has rounded, so that a difference is a fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from tcfuse.types import DType
from tests.conformance.graph_values import (
    MOST,
    MOST_ELEMENTS,
    DiscardError,
    Label,
    Value,
    as_declared,
    computed,
    doubled,
    epsilon_of,
    make_node,
    sizes_in,
    types_of,
)

SIZES = {"N": (3, 1, 17, 0), "M": (20, 5, 1, 4)}
"""What the named sizes are, run by run."""
OPSETS = (13, 17, 18, 20, 21, 23)
FLOATS = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16)
SIGNED = (DType.INT8, DType.INT16, DType.INT32, DType.INT64)
UNSIGNED = (DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64)
DTYPES = (*FLOATS, *FLOATS[:2], *SIGNED, *UNSIGNED, DType.INT32, DType.INT64, DType.BOOL)

Interval = tuple[float, float]
ANY: Interval = (-MOST, MOST)
UNARY: dict[str, Interval] = {
    **dict.fromkeys(("Tanh", "Sigmoid", "Sin", "Cos", "Erf", "Softsign", "Elu"), ANY),
    **dict.fromkeys(("LeakyRelu", "Selu", "Celu", "Softplus", "HardSigmoid"), ANY),
    **dict.fromkeys(("HardSwish", "Mish", "Gelu", "Atan", "Asinh", "Swish"), ANY),
    **dict.fromkeys(("Exp", "Sinh", "Cosh"), (-4, 4)),
    "Log": (0.05, MOST),
    "Sqrt": (0.01, MOST),
    "Reciprocal": (0.1, MOST),
    "Tan": (-1.2, 1.2),
    "Asin": (-0.95, 0.95),
    "Acos": (-0.95, 0.95),
    "Atanh": (-0.9, 0.9),
    "Acosh": (1.1, MOST),
}
"""Continuous functions and where they are well-behaved."""
JUMPING = ("Sign", "Floor", "Ceil", "Round", "IsNaN", "IsInf", "ThresholdedRelu", "Shrink")
EXACT = ("Abs", "Neg", "Relu", "Identity")
BITS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
LOGIC = ("And", "Or", "Xor", "Equal")
COMPARISONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2")
REDUCTIONS += ("ReduceLogSumExp", "ReduceSumSquare", "ReduceProd", "ReduceLogSum")


class Graph:
    """A graph that grows by random nodes."""

    def __init__(self, rng: random.Random, numbers: int) -> None:
        self.rng = rng
        self.numbers = np.random.default_rng(numbers)
        self.opset = rng.choice(OPSETS)
        self.named = rng.random() < 0.35
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[Value] = []
        self.values: list[Value] = []
        self.outputs: list[Value] = []
        self.discarded = 0
        self.add_inputs()

    # ------------------------------------------------------------------ inputs and constants

    @property
    def n_runs(self) -> int:
        """How many times the graph runs."""
        return len(SIZES["N"]) if self.named else 1

    def sizes(self, run: int) -> dict[str, int]:
        """What the named sizes are in one run."""
        return {name: values[run] for name, values in SIZES.items()}

    def add_inputs(self) -> None:
        """A main shape, and others that broadcast to it, of various types."""
        rng = self.rng
        rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7, 8])
        pool: list[Label] = [1, 2, 3, 4, 5, 7, 16, 18] if rank < 4 else [1, 1, 2, 3]
        pool += ["N", "M"] if self.named else [0] if rng.random() < 0.05 else []
        shape = tuple(rng.choice(pool) for _ in range(rank))
        while any(prod(sizes_in(shape, self.sizes(k))) > 1500 for k in range(self.n_runs)):
            shape = tuple(min(3, size) if isinstance(size, int) else size for size in shape[1:])
        main = rng.choice(DTYPES)
        self.add_input(shape, main)
        for _ in range(rng.randint(1, 4)):
            part = shape[rng.randint(0, len(shape)) :] if rng.random() < 0.4 else shape
            ones = 0.3 if rng.random() < 0.4 else 0.0
            part = tuple(1 if rng.random() < ones else size for size in part)
            self.add_input(part, main if rng.random() < 0.6 else rng.choice(DTYPES))

    def add_input(self, shape: tuple[Label, ...], dtype: DType) -> Value:
        """One more input of the model."""
        arrays = [
            self.array(sizes_in(shape, self.sizes(run)), dtype) for run in range(self.n_runs)
        ]
        value = self.known(f"x{len(self.inputs)}", shape, dtype, arrays)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def array(self, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
        """Small numbers: eighths where they are floats, so that sums of them are exact."""
        if prod(shape) > MOST_ELEMENTS:
            raise DiscardError("too many elements")
        if dtype is DType.BOOL:
            return np.asarray(self.numbers.random(shape) < 0.5)
        if dtype.is_float:
            drawn = self.numbers.integers(-24, 25, shape) / 8
        else:
            low, high = (-9, 10) if dtype.is_signed else (0, 14)
            drawn = self.numbers.integers(low, high, shape)
        return np.asarray(drawn).astype(dtype.numpy)

    def known(
        self, name: str, shape: Sequence[Label], dtype: DType, arrays: Sequence[np.ndarray]
    ) -> Value:
        """A value nothing has been done to."""
        exact = tuple(map(doubled, arrays))
        scales = tuple(scale_of(array) for array in exact)
        runs = tuple(arrays)
        return Value(name, dtype, tuple(shape), runs, exact, scales=scales)

    def constant(self, array: np.ndarray) -> Value:
        """One more constant of the model."""
        dtype = next(d for d in DType if d.numpy == array.dtype)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return self.known(name, array.shape, dtype, [array] * self.n_runs)

    def whole(self, *values: int) -> Value:
        """A constant vector of int64."""
        return self.constant(np.array(values, np.int64))

    # ------------------------------------------------------------------ nodes

    def add(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        *shapes: tuple[Label, ...] | None,
        sharp: bool = False,
        length: int = 1,
        single: bool = False,
        **attributes: Any,
    ) -> list[Value]:
        """One more node.

        Args:
            op_type: Operator.
            inputs: Its inputs; ``None`` where one is left out.
            shapes: Of each output; ``None`` where it is the same in all runs.
            sharp: Exact inputs give outputs that are exact in every order of operations, if
                they are in the reference.
            length: Elements summed up to one.
            single: It is computed in single precision, whatever the type.
            attributes: By name.

        Raises:
            DiscardError: It cannot be had.
        """
        bound = types_of(op_type, self.opset, inputs)
        outputs = [f"t{len(self.nodes)}_{k}" for k in range(len(shapes))]
        node = make_node(op_type, inputs, outputs, **attributes)
        present = [value for value in inputs if value is not None][: len(node.input)]
        given = list(inputs)[: len(node.input)]
        runs = computed(node, self.opset, given, exact=False)
        exact = computed(node, self.opset, given, exact=True)
        made = []
        for k, (name, shape) in enumerate(zip(outputs, shapes, strict=True)):
            declared = op_type, self.opset, k, bound
            natively = tuple(as_declared(run[k], *declared) for run in runs)
            exactly = tuple(run[k] for run in exact)
            dtype = next((d for d in DType if d.numpy == natively[0].dtype), None)
            if dtype is None:
                raise DiscardError(f"no element type {natively[0].dtype}")
            exactly = tuple(
                a.astype(np.float64 if dtype.is_float else dtype.numpy) for a in exactly
            )
            labels = self.labels(shape, natively)
            check_numbers(natively, exactly)
            coarse = epsilon_of(DType.FLOAT32) if single else 0.0
            epsilon = max([coarse, epsilon_of(dtype), *(value.epsilon for value in present)])
            scales = tuple(
                max([scale_of(array), *(v.scales[run] for v in present if v.dtype.is_float)])
                for run, array in enumerate(exactly)
            )
            made.append(
                Value(
                    name,
                    dtype,
                    labels,
                    natively,
                    exactly,
                    sharp and all(v.sharp for v in present) and same(natively, exactly),
                    epsilon,
                    max([length, *(value.length for value in present)]),
                    scales,
                )
            )
        self.nodes.append(node)
        self.values += made
        return made

    def labels(
        self, shape: tuple[Label, ...] | None, arrays: Sequence[np.ndarray]
    ) -> tuple[Label, ...]:
        """The shape of a result, checked in every run."""
        if shape is None:
            if len({array.shape for array in arrays}) > 1:
                raise DiscardError("a size without a name")
            return arrays[0].shape
        for run, array in enumerate(arrays):
            if array.shape != sizes_in(shape, self.sizes(run)):
                raise DiscardError(f"shape {array.shape} is not {shape}")
        return shape

    def grow(self) -> None:
        """One random node on a random value, the newest most likely; or none."""
        n_before = len(self.nodes), len(self.constants), len(self.values), len(self.inputs)
        weights = [1 + k * k for k in range(len(self.values))]
        value = self.rng.choices(self.values, weights)[0]
        step = self.rng.choice(STEPS)
        try:
            step(self, value)
        except DiscardError:
            self.discarded += 1
            for made, n in zip(
                (self.nodes, self.constants, self.values, self.inputs), n_before, strict=True
            ):
                del made[n:]

    def another(self, x: Value, *, same_type: bool = True) -> Value:
        """A value that broadcasts with ``x``, which may be ``x``."""
        found = [
            v
            for v in self.values
            if (v.dtype is x.dtype or not same_type) and joint(v.shape, x.shape) is not None
        ]
        if not found:
            raise DiscardError("nothing broadcasts with it")
        return self.rng.choice(found)

    def choose_outputs(self) -> None:
        """Values that nobody reads are outputs, and some others."""
        read = {name for node in self.nodes for name in node.input}
        inputs = {value.name for value in self.inputs}
        made = [v for v in self.values if v.name not in inputs]
        self.outputs = [v for v in made if v.name not in read or self.rng.random() < 0.15]

    def model(self) -> onnx.ModelProto:
        """The whole model."""
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info(v.name, v.dtype.onnx, v.shape) for v in self.inputs],
            [
                helper.make_tensor_value_info(v.name, v.dtype.onnx, v.shape)
                for v in self.outputs
            ],
            self.constants,
        )
        opset = helper.make_opsetid("", self.opset)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def scale_of(array: np.ndarray) -> float:
    """The largest magnitude."""
    return float(np.abs(array.astype(np.float64)).max(initial=0.0))


def same(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> bool:
    """Whether the reference rounds nothing."""
    pairs = zip(a, b, strict=True)
    return all(np.array_equal(x.astype(y.dtype), y) for x, y in pairs)


def check_numbers(natively: Sequence[np.ndarray], exactly: Sequence[np.ndarray]) -> None:
    """Raise ``DiscardError`` for numbers that say nothing: too many, too large, or none."""
    for array, exact in zip(natively, exactly, strict=True):
        if array.size > MOST_ELEMENTS:
            raise DiscardError("too many elements")
        if exact.dtype != np.float64:
            if not np.array_equal(array, exact):
                raise DiscardError("rounding decides about an integer")
            continue
        with np.errstate(all="ignore"):
            if not (np.isfinite(exact).all() and np.isfinite(array.astype(np.float64)).all()):
                raise DiscardError("not finite")
            if scale_of(exact) > MOST:
                raise DiscardError("large")


def joint(*shapes: tuple[Label, ...]) -> tuple[Label, ...] | None:
    """The shape several broadcast to; ``None`` when they do not."""
    rank = max(map(len, shapes))
    result: list[Label] = []
    for sizes in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def spread(*values: Value) -> tuple[Label, ...]:
    """The joint shape of values."""
    shape = joint(*(value.shape for value in values))
    if shape is None:
        raise DiscardError("they do not broadcast")
    return shape


def need(condition: bool) -> None:
    """Raise ``DiscardError`` unless the condition holds."""
    if not condition:
        raise DiscardError("not for these values")


@st.composite
def graphs(draw: st.DrawFn, least: int, most: int) -> Graph:
    """Graphs of that many nodes, or of fewer where steps are discarded."""
    from tests.conformance import graph_steps  # noqa: F401 - fills STEPS

    rng = draw(st.randoms(use_true_random=False))
    graph = Graph(rng, draw(st.integers(0, 2**20)))
    wanted = draw(st.integers(least, most))
    for _ in range(6 * wanted):
        if len(graph.nodes) >= wanted:
            break
        graph.grow()
    graph.choose_outputs()
    return graph


Step = Callable[[Graph, Value], object]
STEPS: list[Step] = []
"""Steps, as often as they are likely."""


def step(weight: int) -> Callable[[Step], Step]:
    """Register a function as a step."""

    def register(function: Step) -> Step:
        STEPS.extend([function] * weight)
        return function

    return register
