"""Barriers of a team against an execution that records who touches what, and when.

A team that is a block waits where it reduces; one that is part of a warp does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcfuse.codegen.cuda.nest import lane_nest
from tcfuse.codegen.cuda.touches import Threads, Touch, Toucher
from tcfuse.codegen.cuda.waits import Wait, barriers
from tcfuse.codegen.from_isl import nests
from tcfuse.codegen.kernel_ast import Block, Guard, Loop, Node
from tcfuse.codegen.tensors import Tensor, tensors_of
from tcfuse.mapping.spreading import spread_loops
from tcfuse.mapping.storage import Memory, place_temporaries
from tcfuse.poly.scop import Scop
from tests.mapping.mapped import mapped
from tests.poly.definitions import LAYER_NORM, SOFTMAX

TEAMS = ((4, 1), (16, 2))  # threads, and neighbouring iterations of each
SIZES = ({"N": 2, "K": 11}, {"N": 2, "K": 8}, {"N": 3, "K": 1})

ROWS = {
    # each thread reads what it wrote
    "own": """def f(float(N, K) X) -> (float(N, K) Y) {
      E(i, j) = exp(X(i, j)) where i in 0:N, j in 0:K
      S(i) +=! E(i, j) where i in 0:N, j in 0:K
      Y(i, j) = E(i, j) / S(i) where i in 0:N, j in 0:K
    }""",
    # threads read what others wrote, once
    "reversed": """def f(float(N, K) X) -> (float(N, K) Y) {
      E(i, j) = exp(X(i, j)) where i in 0:N, j in 0:K
      S(i) +=! E(i, j) where i in 0:N, j in 0:K
      Y(i, j) = E(i, K - 1 - j) / S(i) where i in 0:N, j in 0:K
    }""",
    # two rows, one barrier for both
    "two_rows": """def f(float(N, K) X) -> (float(N, K) Y) {
      E(i, j) = exp(X(i, j)) where i in 0:N, j in 0:K
      S(i) +=! E(i, j) where i in 0:N, j in 0:K
      D(i, j) = E(i, K - 1 - j) / S(i) where i in 0:N, j in 0:K
      T(i) max=! D(i, j) where i in 0:N, j in 0:K
      Y(i, j) = D(i, K - 1 - j) + E(i, K - 1 - j) + T(i) where i in 0:N, j in 0:K
    }""",
    # the halves have their own elements
    "halves": """def f(float(N, 32) X) -> (float(N, 32) Y) {
      E(i, j) = exp(X(i, j)) where i in 0:N, j in 0:32
      S(i) +=! E(i, j) where i in 0:N, j in 0:32
      Y(i, j) = E(i, j) / S(i) where i in 0:N, j in 0:16
      Y(i, j) = E(i, j) * S(i) where i in 0:N, j in 16:32
    }""",
    # what every thread reads is written by lanes
    "first": """def f(float(N, K) X) -> (float(N, K) Y) {
      E(i, j) = exp(X(i, j)) where i in 0:N, j in 0:K
      S(i) +=! E(i, j) where i in 0:N, j in 0:K
      Y(i, j) = E(i, j) / (S(i) + E(i, 0)) where i in 0:N, j in 0:K
    }""",
    # one element after the other: two rows are too few for lanes
    "serial": """def f(float(2, K) X) -> (float(2, K) Y) {
      E(i, j) = exp(X(i, j)) where i in 0:2, j in 0:K
      D(i, j) = E(i, j) + E(i, 0) where i in 0:2, j in 0:K
      Y(i, j) = D(i, 0) where i in 0:2, j in 0:K
    }""",
    # threads share the loop around that over lanes, and read what others of another one wrote
    "spread": """def f(float(N, 3, K) X) -> (float(N, 3, K) Y) {
      E(i, j, k) = exp(X(i, j, k)) where i in 0:N, j in 0:3, k in 0:K
      S(i) +=! E(i, j, k) where i in 0:N, j in 0:3, k in 0:K
      Y(i, j, k) = E(i, j, k) / S(i) + E(i, 0, k) where i in 0:N, j in 0:3, k in 0:K
    }""",
    "layer_norm": LAYER_NORM.replace("512", "3").replace("768", "24"),
    "softmax": SOFTMAX.replace("n0", "N").replace("n1", "K"),
}


@dataclass
class Run:
    """Touches of one execution, by element."""

    scop: Scop
    tensors: Mapping[str, Tensor]
    waits: frozenset[int]
    waits_to_reduce: bool
    sizes: Mapping[str, int]
    team: int
    lanes: int
    epoch: int = 0
    seen: dict[tuple[object, ...], set[tuple[int, int, bool]]] = field(default_factory=dict)

    def value(self, text: object, where: Mapping[str, int]) -> int:
        code = str(text).replace("&&", " and ").replace("||", " or ")
        names = {
            "tcf_floor_div": lambda a, b: a // b,
            "tcf_min": min,
            "tcf_max": max,
            **self.sizes,
            **where,
        }
        return int(eval(code, {}, names))

    def block(self, block: Block, where: Mapping[str, int]) -> None:
        for node in block:
            if id(node) in self.waits:
                self.epoch += 1
            self.node(node, where)

    def node(self, node: Node, where: Mapping[str, int]) -> None:
        match node:
            case Guard():
                taken = self.value(node.condition, where)
                self.block(node.then if taken else node.otherwise, where)
            case Loop() if lane_nest(node) is None:
                for k in range(self.value(node.low, where), self.value(node.high, where)):
                    self.block(node.body, {**where, node.iterator: k})
            case _:
                self.step(node, where)

    def step(self, node: Node, where: Mapping[str, int]) -> None:
        toucher = Toucher(self.scop, self.tensors)
        late = toucher.totals(node)
        self.touch([t for t in toucher.touches(node) if t not in late], where)
        if self.waits_to_reduce and toucher.reduces(node):
            self.epoch += 1
        self.touch(late, where)

    def touch(self, touches: Sequence[Touch], where: Mapping[str, int]) -> None:
        for touch in touches:
            for inner in self.iterations(touch.spans, dict(where)):
                cell = tuple(self.value(c, inner) for c in touch.cell)
                threads = range(1)
                if touch.threads is Threads.EVERY:
                    threads = range(self.team)
                elif touch.threads is Threads.LANE:
                    rank = self.rank(touch, inner)
                    threads = range(rank, rank + 1)
                found = self.seen.setdefault((touch.tensor, *cell), set())
                found |= {(self.epoch, thread, touch.is_write) for thread in threads}

    def rank(self, touch: Touch, where: Mapping[str, int]) -> int:
        """The thread that runs an iteration of a loop over lanes, and of those around it."""
        places = [self.value(place, where) for place in touch.lane]
        extents = [self.value(extent, where) for extent in touch.divided]
        group = places[-1] // self.lanes
        if len(places) > 1:
            groups = -(-extents[-1] // self.lanes)
            outer = places[0]
            for place, extent in zip(places[1:-1], extents[:-1], strict=True):
                outer = outer * extent + place
            group += outer * groups
        return group % self.team

    def iterations(self, spans: tuple, where: dict[str, int]) -> Iterator[dict[str, int]]:
        if not spans:
            yield where
            return
        span, *rest = spans
        for k in range(self.value(span.low, where), self.value(span.high, where)):
            yield from self.iterations(tuple(rest), {**where, span.iterator: k})

    def races(self) -> bool:
        for touches in self.seen.values():
            for epoch, thread, is_write in touches:
                if is_write and any(e == epoch and t != thread for e, t, _ in touches):
                    return True
        return False


@dataclass(frozen=True)
class Body:
    """What a team runs in a turn."""

    scop: Scop
    tensors: Mapping[str, Tensor]
    rows: tuple[str, ...]
    chain: tuple[Loop, ...]
    block: Block

    def races(self, waits: frozenset[int], *, block: bool) -> bool:
        """Whether threads meet while a team, a block or not, runs every turn."""
        return any(self._races(waits, block, sizes, *team) for team in TEAMS for sizes in SIZES)

    def _races(
        self,
        waits: frozenset[int],
        block: bool,
        sizes: Mapping[str, int],
        team: int,
        lanes: int,
    ) -> bool:
        known = {name: sizes[name] for name in self.scop.checked.sizes}
        run = Run(self.scop, self.tensors, waits, block, known, team, lanes)

        def turn(chain: tuple[Loop, ...], where: Mapping[str, int]) -> None:
            if not chain:
                run.block(self.block, where)
                return
            loop, *rest = chain
            for k in range(run.value(loop.low, where), run.value(loop.high, where)):
                turn(tuple(rest), {**where, loop.iterator: k})

        turn(self.chain, {})
        return run.races()

    def waits(self) -> Mapping[int, Wait]:
        turns = [loop.iterator for loop in self.chain]
        return barriers(self.block, self.scop, self.tensors, self.rows, turns)


def body_of(text: str) -> Body:
    """The team's part of a definition of one phase."""
    scop, dependences, tree = mapped(text, fusion="max", vectors=False)
    tree = spread_loops(scop, dependences, tree)
    buffers = place_temporaries(scop, dependences, tree)
    (block,) = nests(scop, tree)
    chain: list[Loop] = []
    while len(block) == 1 and isinstance(block[0], Loop) and block[0].parallel:
        if block[0].lanes:
            break
        chain.append(block[0])
        block = block[0].body
    rows = tuple(b.tensor for b in buffers.values() if b.memory is Memory.ROW)
    tensors = tensors_of(scop.checked, buffers)
    return Body(scop, tensors, rows, tuple(chain), block)


def test_barriers_are_found_where_there_are_some() -> None:
    counts = {}
    for name, text in ROWS.items():
        found = list(body_of(text).waits().values())
        counts[name] = found.count(Wait.SYNC), found.count(Wait.SETTLE)
    assert counts == {
        "own": (0, 0),
        "reversed": (1, 1),
        "two_rows": (1, 2),
        "halves": (1, 1),
        "first": (1, 1),
        "serial": (2, 0),
        "layer_norm": (0, 0),
        "softmax": (0, 0),
        "spread": (1, 1),
    }


def all_nodes(block: Block) -> Iterator[Node]:
    """The nodes that a barrier may stand before."""
    for node in block:
        yield node
        match node:
            case Guard():
                yield from all_nodes(node.then)
                yield from all_nodes(node.otherwise)
            case Loop() if lane_nest(node) is None:
                yield from all_nodes(node.body)


@pytest.mark.parametrize("name", ROWS)
def test_no_threads_meet_and_no_barrier_is_too_many(name: str) -> None:
    assert_fewest(body_of(ROWS[name]))


def assert_fewest(body: Body) -> None:
    """No threads meet, and with fewer barriers, wherever they stand, some would."""
    found = body.waits()
    syncs = frozenset(node for node, wait in found.items() if wait is Wait.SYNC)
    assert not body.races(frozenset(found), block=False)
    assert not body.races(syncs, block=True)
    nodes = [id(node) for node in all_nodes(body.block)]
    assert found.keys() <= set(nodes)
    if len(nodes) > len(body.block):
        return  # a barrier in an inner loop could do for one outside, and would run more often
    for fewer in range(len(syncs)):
        for chosen in combinations(nodes, fewer):
            assert body.races(frozenset(chosen), block=True), chosen


@st.composite
def row_programs(draw: st.DrawFn) -> str:
    """Rows that are written from other rows, in place, from behind, or from one element."""
    lines = ["R0(i, j) = exp(X(i, j)) where i in 0:N, j in 0:K"]
    count = draw(st.integers(1, 3))
    for k in range(1, count + 1):
        reads = []
        for _ in range(draw(st.integers(1, 2))):
            row = draw(st.integers(0, k - 1))
            reads.append(f"R{row}(i, {draw(st.sampled_from(['j', 'K - 1 - j', '0']))})")
        name = "Y" if k == count else f"R{k}"
        value = " + ".join(reads)
        if draw(st.booleans()):
            lines.append(f"S{k}(i) +=! {value} where i in 0:N, j in 0:K")
            value = f"R{draw(st.integers(0, k - 1))}(i, j) / S{k}(i)"
        lines.append(f"{name}(i, j) = {value} where i in 0:N, j in 0:K")
    text = "\n".join(lines)
    return f"def f(float(N, K) X) -> (float(N, K) Y) {{\n{text}\n}}"


@settings(max_examples=8, deadline=None)
@given(text=row_programs())
def test_random_rows_have_the_fewest_barriers(text: str) -> None:
    assert_fewest(body_of(text))
