"""Families of operators from rank 0, or the lowest they take, to rank 8."""

from __future__ import annotations

import pytest

from tests.conformance import compiled, emulated
from tests.end_to_end.graphs import Graph, graph, wrong

pytestmark = [pytest.mark.compiler, pytest.mark.ort]

RANKS = (0, 1, 3, 5, 8)
SIZES = (2, 3, 1, 2, 2, 1, 3, 2)

# The lowest rank, and the nodes from x to y; {last} is the last axis, {back} all reversed.
FAMILIES = {
    "elementwise": (0, "y = Exp(x)"),
    "choice": (0, "c = Less(x, h) y = Where(c, x, h)"),
    "broadcast": (0, "a = Add(x, v) y = Mul(a, x)"),
    "conversion": (0, "a = Cast<to = 7>(x) b = Cast<to = 1>(a) y = Add(b, x)"),
    "reduction": (0, "s = ReduceSum(x) y = Div(x, s)"),
    "mean of the last": (1, "a = ReduceMean<axes = [{last}]>(x) y = Sub(x, a)"),
    "softmax": (1, "y = Softmax<axis = {last}>(x)"),
    "softmax of the first": (1, "y = Softmax<axis = 0>(x)"),
    "normalization": (1, "y = LayerNormalization<axis = {last}>(x, g)"),
    "instances": (3, "y = InstanceNormalization(x, g3, g3)"),
    "transpose": (1, "a = Exp(x) b = Transpose<perm = [{back}]>(a) y = Transpose(b)"),
    "concatenation": (1, "a = Concat<axis = 0>(x, x) b, c = Split<axis = 0>(a) y = Sub(b, c)"),
    "reversal": (1, "y = Slice(x, minus_1, far, axis_0, minus_1)"),
    "flattening": (1, "a = Reshape(x, minus_1) b = Sin(a) s = Shape(x) y = Reshape(b, s)"),
    "selection": (1, "a = Exp(x) y = Gather<axis = 0>(a, index)"),
    "padding": (1, "y = Pad(x, {pads}_pads)"),
}
CONSTANTS = (
    "float h = {0.5}, float[2] v = {1, 2}, float[2] g = {1, 2}, float[3] g3 = {1, 2, 3}, "
    "int64[1] minus_1 = {-1}, int64[1] far = {-9223372036854775807}, int64[1] axis_0 = {0}, "
    "int64[2] index = {1, 0}"
)


def of_rank(family: str, rank: int) -> Graph:
    """A graph of that family on a tensor of that rank, whose last size is 2."""
    shape = [*SIZES[: max(0, rank - 1)], *([2] if rank else [])]
    _, nodes = FAMILIES[family]
    back = ", ".join(map(str, range(rank - 1, -1, -1)))
    pads = ", ".join(["1"] * 2 * rank)
    text = nodes.replace("{last}", str(rank - 1)).replace("{back}", back)
    text = text.replace("{pads}_pads", "pads")
    constants = f"{CONSTANTS}, int64[{2 * rank}] pads = {{{pads}}}" if rank else CONSTANTS
    dims = ",".join(map(str, shape))
    types = f"float[{dims}]" if rank else "float"
    result = {
        "broadcast": "float[2]" if rank == 0 else types,
        "padding": f"float[{','.join(str(d + 2) for d in shape)}]",
        "selection": f"float[{','.join(map(str, [2, *shape[1:]]))}]",
    }.get(family, types)
    return graph(
        f"{family} of rank {rank}",
        f"g ({types} x) => ({result} y) <{constants}> {{ {text} }}",
        opset=17,
    )


def graphs(*ranks: int) -> list[Graph]:
    return [
        of_rank(family, rank)
        for family, (lowest, _) in FAMILIES.items()
        for rank in ranks
        if rank >= lowest
    ]


def test_every_family_of_every_rank():
    assert wrong(graphs(*RANKS), compiled.run_cases) == {}


def test_every_family_of_the_highest_rank_on_a_gpu():
    assert wrong(graphs(max(RANKS)), emulated.run_cases) == {}
