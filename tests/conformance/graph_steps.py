"""The steps that random graphs grow by: one function a kind of operator."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

import numpy as np

from tcfuse.types import DType
from tests.conformance.graph_grammar import (
    BITS,
    COMPARISONS,
    DTYPES,
    EXACT,
    FLOATS,
    JUMPING,
    LOGIC,
    REDUCTIONS,
    SIGNED,
    UNARY,
    UNSIGNED,
    Graph,
    joint,
    need,
    spread,
    step,
)
from tests.conformance.graph_values import Label, Value

Shape = tuple[Label, ...]

# ---------------------------------------------------------------------- one element at a time


@step(3)
def unary(graph: Graph, x: Value) -> None:
    name = graph.rng.choice([n for n, bounds in UNARY.items() if x.within(*bounds)] or ["Abs"])
    graph.add(name, [x], x.shape)


@step(2)
def exact_unary(graph: Graph, x: Value) -> None:
    name = graph.rng.choice([*EXACT, *JUMPING])
    need(x.sharp or name not in JUMPING)
    graph.add(name, [x], x.shape, sharp=True)


@step(1)
def negation(graph: Graph, x: Value) -> None:
    name = "Not" if x.dtype is DType.BOOL else "BitwiseNot"
    graph.add(name, [x], x.shape, sharp=True)


@step(4)
def binary(graph: Graph, x: Value) -> None:
    y = graph.another(x)
    pair = [x, y] if graph.rng.random() < 0.5 else [y, x]
    name = graph.rng.choice(["Add", "Sub", "Mul", "Add", "Sub", "Mul", "Max", "Min"])
    graph.add(name, pair, spread(*pair), sharp=True)


@step(2)
def quotient(graph: Graph, x: Value) -> None:
    y = graph.another(x)
    name = graph.rng.choice(["Div", "Mod", "Pow", "PRelu"])
    match name:
        case "Div" if x.dtype.is_float:
            need(y.within(0.1, 1e3) or y.within(-1e3, -0.1))
            graph.add(name, [x, y], spread(x, y))
        case "Div":  # the reference rounds down, and everybody else towards zero
            need(y.within(1, 2.0**63) and x.within(0, 2.0**63))
            graph.add(name, [x, y], spread(x, y), sharp=True)
        case "Mod":
            need(x.sharp and y.sharp and (y.within(0.1, 2.0**63) or y.within(-(2.0**63), -0.1)))
            fmod = int(x.dtype.is_float or graph.rng.random() < 0.4)
            graph.add(name, [x, y], spread(x, y), sharp=True, fmod=fmod)
        case "Pow":
            need(x.dtype.is_float and x.within(0.1, 30) and y.within(-2, 2))
            graph.add(name, [x, y], spread(x, y))
        case _:
            need(spread(x, y) == x.shape)
            graph.add(name, [x, y], x.shape, sharp=True)


@step(1)
def bits(graph: Graph, x: Value) -> None:
    y = graph.another(x)
    if x.dtype is DType.BOOL:
        name = graph.rng.choice(LOGIC)
    elif (
        x.dtype in UNSIGNED and y.within(0, 8 * x.dtype.bytes - 1) and graph.rng.random() < 0.5
    ):
        direction = graph.rng.choice(["LEFT", "RIGHT"])
        graph.add("BitShift", [x, y], spread(x, y), sharp=True, direction=direction)
        return
    else:
        name = graph.rng.choice(BITS)
    graph.add(name, [x, y], spread(x, y), sharp=True)


@step(2)
def comparison(graph: Graph, x: Value) -> None:
    y = graph.another(x)
    need(x.sharp and y.sharp)
    graph.add(graph.rng.choice(COMPARISONS), [x, y], spread(x, y), sharp=True)


@step(2)
def where(graph: Graph, x: Value) -> None:
    conditions = [v for v in graph.values if v.dtype is DType.BOOL]
    need(bool(conditions))
    condition, y = graph.rng.choice(conditions), graph.another(x)
    graph.add("Where", [condition, x, y], spread(condition, x, y), sharp=True)


@step(2)
def several(graph: Graph, x: Value) -> None:
    name = graph.rng.choice(["Sum", "Mean", "Max", "Min"])
    others = [graph.another(x) for _ in range(graph.rng.randint(0, 3))]
    operands = [x, *others]
    graph.rng.shuffle(operands)
    graph.add(name, operands, spread(*operands), sharp=name != "Mean")


@step(2)
def clip(graph: Graph, x: Value) -> None:
    low, high = graph.rng.choice([(-1, 1), (0, 2), (None, 1), (0, None), (None, None), (2, -1)])
    need(x.dtype.is_signed or all(b is None or b >= 0 for b in (low, high)))
    bounds = [
        None if bound is None else graph.constant(np.array(bound, x.dtype.numpy))
        for bound in (low, high)
    ]
    graph.add("Clip", [x, *bounds], x.shape, sharp=True)


@step(5)
def cast(graph: Graph, x: Value) -> None:
    target = graph.rng.choice(DTYPES)
    if x.dtype.is_float and not target.is_float:
        need(x.sharp)
        if target is not DType.BOOL:
            info = np.iinfo(target.numpy)
            need(x.within(max(info.min, -1e6), min(info.max, 1e6)))
    graph.add("Cast", [x], x.shape, sharp=True, to=target.onnx)


@step(1)
def cast_like(graph: Graph, x: Value) -> None:
    y = graph.rng.choice(graph.values)
    need(x.dtype.is_float is y.dtype.is_float and y.dtype is not DType.BOOL)
    need(not x.dtype.is_float or x.dtype is y.dtype)
    graph.add("CastLike", [x, y], x.shape, sharp=True)


# ---------------------------------------------------------------------- rows


@step(4)
def reduce(graph: Graph, x: Value) -> None:
    rng = graph.rng
    name = rng.choice(REDUCTIONS)
    axes = sorted(rng.sample(range(x.rank), rng.randint(0, x.rank)))
    keep = rng.random() < 0.6
    if name == "ReduceLogSum":
        need(x.within(0.05, 1e3))
    if name == "ReduceProd":
        need(x.within(-2, 2))
    every = not axes
    spelled = [a - x.rank if rng.random() < 0.3 else a for a in axes]
    reduced = range(x.rank) if every else axes
    shape = tuple(
        1 if d in reduced else s for d, s in enumerate(x.shape) if keep or d not in reduced
    )
    inputs, attributes = [x], {"keepdims": int(keep)}
    if graph.opset >= (13 if name == "ReduceSum" else 18):
        if every and rng.random() < 0.3:
            attributes["noop_with_empty_axes"] = 1
            need(name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"))
            shape = x.shape
        elif not every:
            inputs.append(graph.whole(*spelled))
    elif not every:
        attributes["axes"] = spelled
    length = longest(x, reduced)
    exact = name in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare")
    graph.add(name, inputs, shape, sharp=exact, length=length, **attributes)


def without(shape: Shape, axes: Collection[int], *, keep: bool) -> Shape:
    """The shape that is left of a reduction."""
    sizes = enumerate(shape)
    return tuple(1 if d in axes else s for d, s in sizes if keep or d not in axes)


def longest(x: Value, axes: Collection[int]) -> int:
    """The most elements along some axes together, over all runs."""
    return max(prod(array.shape[a] for a in axes) for array in x.runs)


@step(2)
def softmax(graph: Graph, x: Value) -> None:
    need(x.rank > 0 and x.dtype.is_float)
    axis = graph.rng.randrange(-x.rank, x.rank)
    name = graph.rng.choice(["Softmax", "Softmax", "LogSoftmax"])
    graph.add(name, [x], x.shape, length=longest(x, [axis]), axis=axis)


@step(2)
def normalize(graph: Graph, x: Value) -> None:
    need(x.rank > 0 and x.dtype.is_float)
    rng, numbers = graph.rng, graph.numbers
    name = rng.choice(["LayerNormalization", "RMSNormalization", "LpNormalization"])
    axis = rng.randrange(x.rank)
    length = longest(x, range(axis, x.rank))
    if name == "LpNormalization":
        need(x.within(0.1, 1e3))  # the reference forgets the magnitude
        length = longest(x, [axis])
        graph.add(name, [x], x.shape, length=length, axis=axis, p=rng.choice([1, 2]))
        return
    shape = x.shape[axis:]
    need(all(isinstance(size, int) and size > 0 for size in shape))
    weights = [
        graph.constant(np.asarray(numbers.integers(-8, 9, shape) / 8).astype(x.dtype.numpy))
        for _ in range(1 if name[0] == "R" else rng.choice([1, 2]))
    ]
    attributes = {"axis": axis, "epsilon": 0.01, "stash_type": 1}
    graph.add(name, [x, *weights], x.shape, length=length, single=True, **attributes)


@step(1)
def normalize_channels(graph: Graph, x: Value) -> None:
    need(x.rank > 2 and x.dtype.is_float and isinstance(x.shape[1], int) and x.shape[1] > 0)
    channels = int(x.shape[1])
    name = graph.rng.choice(
        ["InstanceNormalization", "BatchNormalization", "GroupNormalization"]
    )

    def weight(low: int) -> Value:
        drawn = graph.numbers.integers(low, 9, channels) / 8
        return graph.constant(drawn.astype(x.dtype.numpy))

    length = longest(x, range(1, x.rank))
    inputs, attributes = [x, weight(-8), weight(-8)], {"epsilon": 0.01}
    if name == "GroupNormalization":
        attributes["stash_type"] = 1
    if name == "BatchNormalization":
        inputs += [weight(-8), weight(2)]
    if name == "GroupNormalization":
        need(graph.opset >= 21)
        divisors = [g for g in range(1, channels + 1) if channels % g == 0]
        attributes["num_groups"] = graph.rng.choice(divisors)
    graph.add(name, inputs, x.shape, length=length, single=True, **attributes)


@step(1)
def search(graph: Graph, x: Value) -> None:
    need(x.rank > 0 and x.sharp)
    axis, keep = graph.rng.randrange(x.rank), graph.rng.random() < 0.5
    name = graph.rng.choice(["ArgMax", "ArgMin", "Hardmax"])
    if name == "Hardmax":
        graph.add(name, [x], x.shape, sharp=True, axis=axis)
        return
    shape = without(x.shape, [axis], keep=keep)
    last = graph.rng.choice([0, 1])
    graph.add(
        *(name, [x], shape), sharp=True, axis=axis, keepdims=int(keep), select_last_index=last
    )


@step(1)
def running_sum(graph: Graph, x: Value) -> None:
    need(x.rank > 0)
    axis = graph.rng.randrange(x.rank)
    switches = {name: graph.rng.choice([0, 1]) for name in ("exclusive", "reverse")}
    where = graph.constant(np.array(axis, np.int64))
    length = longest(x, [axis])
    graph.add("CumSum", [x, where], x.shape, sharp=True, length=length, **switches)


# ---------------------------------------------------------------------- elements move


@step(3)
def reshape(graph: Graph, x: Value) -> None:
    shape, rng = x.shape, graph.rng
    kind = rng.randrange(5)
    if kind == 0 and len(shape) > 1:
        k = rng.randrange(len(shape) - 1)
        a, b = shape[k], shape[k + 1]
        need(isinstance(a, int) and isinstance(b, int))
        target(graph, x, (*shape[:k], int(a) * int(b), *shape[k + 2 :]))
    elif kind == 1 and shape:
        k = rng.randrange(len(shape))
        need(isinstance(shape[k], int) and len(shape) < 8)
        parts = [(f, int(shape[k]) // f) for f in (1, 2, 3, 4) if int(shape[k]) % f == 0]
        target(graph, x, (*shape[:k], *rng.choice(parts), *shape[k + 1 :]))
    elif kind == 2:
        need(len(shape) < 8)
        k = rng.randrange(len(shape) + 1)
        graph.add("Unsqueeze", [x, graph.whole(k)], (*shape[:k], 1, *shape[k:]), sharp=True)
    elif kind == 3 and 1 in shape:
        k = shape.index(1)
        graph.add("Squeeze", [x, graph.whole(k)], (*shape[:k], *shape[k + 1 :]), sharp=True)
    else:
        need(all(isinstance(size, int) for size in shape))
        axis = rng.randrange(len(shape) + 1)
        parts = [prod(int(s) for s in half) for half in (shape[:axis], shape[axis:])]
        graph.add("Flatten", [x], tuple(parts), sharp=True, axis=axis)


def target(graph: Graph, x: Value, shape: tuple[Label, ...]) -> None:
    """A Reshape; at most one size may be a name."""
    need(sum(isinstance(size, str) for size in shape) <= 1 and 0 not in shape)
    sizes = [-1 if isinstance(size, str) else size for size in shape]
    if -1 not in sizes and sizes and graph.rng.random() < 0.3:
        sizes[graph.rng.randrange(len(sizes))] = -1
    graph.add("Reshape", [x, graph.whole(*sizes)], shape, sharp=True)


@step(3)
def transpose(graph: Graph, x: Value) -> None:
    perm = graph.rng.sample(range(x.rank), x.rank)
    if graph.rng.random() < 0.2:
        graph.add("Transpose", [x], x.shape[::-1], sharp=True)
    else:
        graph.add("Transpose", [x], tuple(x.shape[p] for p in perm), sharp=True, perm=perm)


@step(2)
def cut(graph: Graph, x: Value) -> None:
    axis, size = known_axis(graph, x)
    step_, rng = graph.rng.choice([1, 1, 2, 3, -1, -2]), graph.rng
    first, last = (
        rng.randint(-size - 2, size + 2),
        rng.choice([rng.randint(-size, size), 2**31]),
    )
    if step_ < 0:
        need(first >= -size)  # before that ONNX starts at 0, and the reference nowhere
        last = rng.choice([last, -(2**31)])
    count = len(range(*slice(first, last, step_).indices(size)))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    where_ = [graph.whole(v) for v in (first, last, axis - rng.choice([0, x.rank]), step_)]
    graph.add("Slice", [x, *where_], shape, sharp=True)


def known_axis(graph: Graph, x: Value) -> tuple[int, int]:
    """An axis whose size is a number, and that."""
    axes = [k for k, size in enumerate(x.shape) if isinstance(size, int) and size > 0]
    need(bool(axes))
    axis = graph.rng.choice(axes)
    return axis, int(x.shape[axis])


@step(2)
def concatenate(graph: Graph, x: Value) -> None:
    axis, _ = known_axis(graph, x)

    def fits(y: Value) -> bool:
        return (
            y.dtype is x.dtype
            and y.rank == x.rank
            and isinstance(y.shape[axis], int)
            and all(
                a == b
                for d, (a, b) in enumerate(zip(x.shape, y.shape, strict=True))
                if d != axis
            )
        )

    found = [v for v in graph.values if fits(v)]
    parts = [x, *graph.rng.choices(found, k=graph.rng.randint(0, 2))]
    graph.rng.shuffle(parts)
    total = sum(int(part.shape[axis]) for part in parts)
    shape = (*x.shape[:axis], total, *x.shape[axis + 1 :])
    graph.add("Concat", parts, shape, sharp=True, axis=axis)


@step(2)
def split(graph: Graph, x: Value) -> None:
    axis, size = known_axis(graph, x)
    need(size > 1)
    at = graph.rng.randrange(1, size)
    sizes = graph.rng.choice([[at, size - at], [at, size - at], [1, size - 1], [size, 0]])
    shapes = [(*x.shape[:axis], n, *x.shape[axis + 1 :]) for n in sizes]
    graph.add("Split", [x, graph.whole(*sizes)], *shapes, sharp=True, axis=axis)


@step(2)
def gather(graph: Graph, x: Value) -> None:
    axis, size = known_axis(graph, x)
    rng = graph.rng
    shape = rng.choice([(), (1,), (3,), (2, 2)])
    index = graph.numbers.integers(-size, size, shape)
    kind = rng.choice([np.int32, np.int64])
    positions = graph.constant(np.asarray(index).astype(kind))
    if rng.random() < 0.4:  # known only when it runs
        positions = graph.add_input(shape, DType.INT64)
        for array in (*positions.runs, *positions.exact):
            array[...] = index
    result = (*x.shape[:axis], *shape, *x.shape[axis + 1 :])
    need(len(result) <= 8)
    graph.add("Gather", [x, positions], result, sharp=True, axis=axis)


@step(2)
def pad(graph: Graph, x: Value) -> None:
    axis, size = known_axis(graph, x)
    pads = [0] * (2 * x.rank)
    modes = ["constant", "constant", "edge", "reflect"] + ["wrap"] * (graph.opset >= 19)
    mode, rng = graph.rng.choice(modes), graph.rng
    most = {"constant": 3, "edge": 3, "reflect": size - 1, "wrap": size}[mode]
    pads[axis] = rng.randint(0, min(most, 3))
    pads[axis + x.rank] = rng.randint(0, min(most, 3))
    if mode == "constant" and size > 1 and rng.random() < 0.2:
        pads[axis] = -1
    grown = size + pads[axis] + pads[axis + x.rank]
    value = [graph.constant(np.array(1, x.dtype.numpy))] if rng.random() < 0.5 else []
    shape = (*x.shape[:axis], grown, *x.shape[axis + 1 :])
    graph.add("Pad", [x, graph.whole(*pads), *value], shape, sharp=True, mode=mode)


@step(2)
def expand(graph: Graph, x: Value) -> None:
    need(all(isinstance(size, int) for size in x.shape))
    wide: list[Label] = [
        graph.rng.choice([2, 3]) if size == 1 and graph.rng.random() < 0.5 else size
        for size in x.shape
    ]
    if graph.rng.random() < 0.4:
        need(x.rank < 8)
        wide.insert(0, 2)
    asked = [1 if size != 1 and graph.rng.random() < 0.3 else size for size in wide]
    shape = joint(x.shape, tuple(asked))
    need(shape is not None)
    graph.add("Expand", [x, graph.whole(*(int(a) for a in asked))], shape, sharp=True)


@step(1)
def tile(graph: Graph, x: Value) -> None:
    repeats = [graph.rng.choice([1, 1, 2, 3]) for _ in x.shape]
    need(all(isinstance(size, int) or r == 1 for size, r in zip(x.shape, repeats, strict=True)))
    shape = tuple(s if r == 1 else int(s) * r for s, r in zip(x.shape, repeats, strict=True))
    graph.add("Tile", [x, graph.whole(*repeats)], shape, sharp=True)


@step(1)
def triangle(graph: Graph, x: Value) -> None:
    need(x.rank > 1)
    k = [graph.constant(np.array(graph.rng.randint(-3, 3), np.int64))]
    diagonal = k if graph.rng.random() < 0.6 else []
    graph.add("Trilu", [x, *diagonal], x.shape, sharp=True, upper=graph.rng.choice([0, 1]))


@step(1)
def blocks(graph: Graph, x: Value) -> None:
    need(x.rank == 4)
    n, c, h, w = x.shape
    if graph.rng.random() < 0.5:
        need(isinstance(c, int) and c % 4 == 0 and c > 0)
        need(isinstance(h, int) and isinstance(w, int))
        mode = graph.rng.choice(["DCR", "CRD"])
        shape = (n, int(c) // 4, 2 * int(h), 2 * int(w))
        graph.add("DepthToSpace", [x], shape, sharp=True, blocksize=2, mode=mode)
    else:
        need(isinstance(h, int) and isinstance(w, int) and isinstance(c, int))
        need(int(h) % 2 == 0 and int(w) % 2 == 0)
        shape = (n, int(c) * 4, int(h) // 2, int(w) // 2)
        graph.add("SpaceToDepth", [x], shape, sharp=True, blocksize=2)


@step(1)
def gather_elements(graph: Graph, x: Value) -> None:
    axis, size = known_axis(graph, x)
    need(all(isinstance(s, int) for s in x.shape) and 0 not in x.shape)
    shape = tuple(
        graph.rng.randint(1, 4) if d == axis else int(s) for d, s in enumerate(x.shape)
    )
    index = graph.constant(graph.numbers.integers(-size, size, shape))
    graph.add("GatherElements", [x, index], shape, sharp=True, axis=axis)


@step(1)
def scatter(graph: Graph, x: Value) -> None:
    axis, size = known_axis(graph, x)
    need(all(isinstance(s, int) for s in x.shape) and 0 not in x.shape)
    others = [v for v in graph.values if v.dtype is x.dtype and v.rank == x.rank]
    updates = graph.rng.choice(others)
    need(all(isinstance(s, int) for s in updates.shape) and 0 not in updates.shape)
    need(all(int(u) <= int(s) for u, s in zip(updates.shape, x.shape, strict=True)))
    need(int(updates.shape[axis]) <= size)
    order = np.argsort(
        graph.numbers.random((*updates.shape[:axis], *updates.shape[axis + 1 :], size))
    )
    index = np.moveaxis(order[..., : int(updates.shape[axis])], -1, axis)
    how = {"reduction": "add"} if graph.opset >= 16 and graph.rng.random() < 0.4 else {}
    where_ = graph.constant(index.astype(np.int64))
    graph.add("ScatterElements", [x, where_, updates], x.shape, sharp=True, axis=axis, **how)


@step(1)
def one_hot(graph: Graph, x: Value) -> None:
    need(x.dtype in (*SIGNED, *UNSIGNED) and x.within(-9, 9) and 0 < x.rank < 8)
    depth = graph.constant(np.array(graph.rng.choice([1, 4, 10]), np.int64))
    kind = graph.rng.choice([DType.FLOAT32, DType.INT32, DType.FLOAT64])
    values = graph.constant(np.array([0, 3], kind.numpy))
    axis = graph.rng.randrange(x.rank + 1)
    shape = (*x.shape[:axis], int(depth.runs[0]), *x.shape[axis:])
    graph.add("OneHot", [x, depth, values], shape, sharp=True, axis=axis)


# ---------------------------------------------------------------------- products


@step(2)
def product(graph: Graph, x: Value) -> None:
    need(x.rank > 1 and x.dtype in FLOATS and isinstance(x.shape[-1], int))
    k, n = int(x.shape[-1]), graph.rng.choice([1, 3, 5])
    need(0 < k <= 32)
    weight = graph.constant(graph.array((k, n), x.dtype))
    graph.add("MatMul", [x, weight], (*x.shape[:-1], n), sharp=True, length=k)


@step(1)
def dense(graph: Graph, x: Value) -> None:
    need(x.rank == 2 and x.dtype in FLOATS and all(isinstance(s, int) and s for s in x.shape))
    rng = graph.rng
    m, k = int(x.shape[0]), int(x.shape[1])
    flags = {name: rng.choice([0, 1]) for name in ("transA", "transB")}
    m, k = (k, m) if flags["transA"] else (m, k)
    n = rng.choice([1, 4])
    weight = graph.constant(graph.array((n, k) if flags["transB"] else (k, n), x.dtype))
    shapes: list[tuple[int, ...]] = [(), (n,), (1, n), (m, 1), (m, n)]
    bias = (
        [graph.constant(graph.array(rng.choice(shapes), x.dtype))] if rng.random() < 0.7 else []
    )
    factors = {name: rng.choice([1.0, 0.5, 2.0]) for name in ("alpha", "beta")}
    graph.add("Gemm", [x, weight, *bias], (m, n), sharp=True, length=k, **flags, **factors)


@step(1)
def convolution(graph: Graph, x: Value) -> None:
    need(x.rank in (3, 4) and x.dtype in FLOATS[:3])
    need(all(isinstance(s, int) and s for s in x.shape[1:]))
    channels, rng, n_axes = int(x.shape[1]), graph.rng, x.rank - 2
    need(channels <= 8 and all(int(s) <= 18 for s in x.shape[2:]))
    group = rng.choice([g for g in range(1, channels + 1) if channels % g == 0])
    filters = group * rng.choice([1, 2])
    kernel = [rng.choice([1, 2, 3]) for _ in range(n_axes)]
    attributes = {
        "strides": [rng.choice([1, 2]) for _ in range(n_axes)],
        "dilations": [rng.choice([1, 1, 2]) for _ in range(n_axes)],
        "pads": [rng.randrange(2) for _ in range(2 * n_axes)],
        "group": group,
    }
    weight = graph.constant(graph.array((filters, channels // group, *kernel), x.dtype))
    bias = [graph.constant(graph.array((filters,), x.dtype))] if rng.random() < 0.5 else []
    spatial = graph_spatial(x, kernel, attributes)
    length = channels // group * prod(kernel)
    shape = (x.shape[0], filters, *spatial)
    graph.add("Conv", [x, weight, *bias], shape, sharp=True, length=length, **attributes)


def graph_spatial(x: Value, kernel: list[int], attributes: dict[str, object]) -> list[int]:
    """The sizes that a window leaves."""
    n_axes = len(kernel)
    strides, pads = attributes["strides"], attributes["pads"]
    dilations = attributes.get("dilations", [1] * n_axes)
    sizes = []
    for d in range(n_axes):
        window = dilations[d] * (kernel[d] - 1) + 1  # type: ignore[index]
        padded = int(x.shape[2 + d]) + pads[d] + pads[d + n_axes]  # type: ignore[index]
        need(padded >= window)
        sizes.append((padded - window) // strides[d] + 1)  # type: ignore[index]
    return sizes


@step(1)
def pool(graph: Graph, x: Value) -> None:
    need(x.rank in (3, 4) and x.dtype in FLOATS[:3])
    need(all(isinstance(s, int) and s for s in x.shape[2:]))
    rng, n_axes = graph.rng, x.rank - 2
    name = rng.choice(["AveragePool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool"])
    if name.startswith("Global"):
        length = longest(x, range(2, x.rank))
        shape = (*x.shape[:2], *[1] * n_axes)
        graph.add(name, [x], shape, sharp=name == "GlobalMaxPool", length=length)
        return
    kernel = [rng.choice([1, 2, 3]) for _ in range(n_axes)]
    attributes = {
        "kernel_shape": kernel,
        "strides": [rng.choice([1, 2]) for _ in range(n_axes)],
        "pads": [rng.randrange(2) if k > 1 else 0 for k in kernel] * 2,
    }
    spatial = graph_spatial(x, kernel, attributes)
    if name == "AveragePool":
        attributes["count_include_pad"] = rng.choice([0, 1])  # type: ignore[assignment]
    shape = (*x.shape[:2], *spatial)
    graph.add(name, [x], shape, sharp=name == "MaxPool", length=prod(kernel), **attributes)


# ---------------------------------------------------------------------- quantization


@step(1)
def quantize(graph: Graph, x: Value) -> None:
    need(x.dtype is DType.FLOAT32 and x.sharp and x.within(-100, 100))
    kind = graph.rng.choice([DType.UINT8, DType.INT8])
    scale = graph.constant(np.array(graph.rng.choice([0.25, 0.5, 1.0]), np.float32))
    zero = graph.constant(np.array(graph.rng.choice([0, 3]), kind.numpy))
    graph.add("QuantizeLinear", [x, scale, zero], x.shape, sharp=True)


@step(1)
def dequantize(graph: Graph, x: Value) -> None:
    need(x.dtype in (DType.UINT8, DType.INT8))
    scale = graph.constant(np.array(graph.rng.choice([0.25, 0.5]), np.float32))
    zero = graph.constant(np.array(graph.rng.choice([0, 3]), x.dtype.numpy))
    graph.add("DequantizeLinear", [x, scale, zero], x.shape, sharp=True)
