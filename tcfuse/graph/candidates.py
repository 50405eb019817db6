"""Candidate regions of one part: what the integer program chooses among.

They are the part whole, the greedy planner's regions, and of each of these

* without each contraction, since those are rarely faster in a region;
* with each node beside it, and without each node at its border;
* every run of nodes between cut points, which are the places where the fewest bytes cross.

Each is taken as it is and trimmed at its border, piece by piece.  All are convex and connected,
and keep the rules of ``graph.worth`` but the one that they must be expected to win, which is
for the program to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx_ir as ir

from tcfuse.graph.adoption import in_pieces, reads_pieces
from tcfuse.graph.constraints import Constraint
from tcfuse.graph.cuts import cut_joined
from tcfuse.graph.legality import MAX_NODES
from tcfuse.graph.part import Part, bits, set_of
from tcfuse.graph.part_kinds import PartKinds
from tcfuse.graph.prices import Prices
from tcfuse.graph.worth import CONSERVATIVE, EAGER, expected_to_win
from tcfuse.opdef import Kind

MOST_CONTRACTIONS = 8
"""Of a region, that are taken out one by one."""

MOST_BORDER = 12
"""Nodes at a border that are left out or taken in one by one."""


def candidates(prices: Prices, cuts: int, wishes: Sequence[Constraint] = ()) -> list[int]:
    """Sets of nodes that may be regions, each once.

    Args:
        prices: Of the part.
        cuts: Most cut points of a source of runs.
        wishes: There are candidates that keep each of these constraints, and all of them.
    """
    part = prices.part
    seen: set[int] = set()
    found: dict[int, None] = dict.fromkeys(part.greedy)
    sources = [*part.greedy, *part.pieces(_without_contractions(prices)), part.everything]
    for granted in (*([wish] for wish in wishes), wishes) if wishes else ():
        for source in list(sources):
            sources += _grown(part, source, granted)
    for wish in wishes:
        numbers = set_of(k for k, node in enumerate(part.nodes) if node in wish.required)
        if numbers:  # asked for, so it need not be worth a kernel
            around = [s for s in sources if not numbers & ~s]
            found |= dict.fromkeys(
                some for some in (part.hull(numbers), *around) if _is_whole(part, some)
            )
    kinds = PartKinds.of(part, prices.pruner)
    for some in dict.fromkeys(_around_sources(prices, dict.fromkeys(sources), cuts)):
        for piece in part.pieces(some):
            if piece in seen:
                continue
            seen.add(piece)
            for region in {piece, *_trimmed(prices, kinds, piece)}:
                if region not in found and is_legal(prices, kinds, region):
                    found[region] = None
    return list(found)


def _around_sources(prices: Prices, sources: Iterable[int], cuts: int) -> Iterator[int]:
    """Sets that sources are cut into, or that differ little from them."""
    for source in sources:
        yield from _runs(prices, source, cuts)
        yield from _neighbours(prices, source)


def is_legal(prices: Prices, kinds: PartKinds, region: int) -> bool:
    """Whether a connected set may be a region."""
    part, pruner = prices.part, prices.pruner
    if not region or region.bit_count() > MAX_NODES or not part.is_convex(region):
        return False
    nodes = part.members(region)
    rules = CONSERVATIVE if pruner.conservative else EAGER
    if not all(rule(pruner, nodes) for rule in rules if rule is not expected_to_win):
        return False
    if (
        pruner.conservative
        and region & kinds.normalisations
        and region & kinds.joins
        and len(cut_joined(nodes, pruner.opsets)) > 1
    ):
        return False
    if not region & kinds.contractions or not region & kinds.pieces:
        return True
    pieces = in_pieces(nodes, set(nodes), pruner.opsets)
    return not any(
        reads_pieces(part.nodes[k], pieces) for k in bits(region & kinds.contractions)
    )


def _is_whole(part: Part, some: int) -> bool:
    """Whether a set is convex and in one piece."""
    return part.is_convex(some) and len(part.pieces(some)) == 1


def _grown(part: Part, source: int, wishes: Sequence[Constraint]) -> list[int]:
    """A set cut into regions, as large as they get, that keep constraints."""
    home: dict[int, int] = {}
    for k in bits(source):
        mine = 1 << k
        if not all(wish.allows(part.members(mine)) for wish in wishes if not wish.required):
            continue
        for other in {home[j] for j in bits(part.near[k] & source) if j in home}:
            joined = mine | other
            if part.is_convex(joined) and all(w.allows(part.members(joined)) for w in wishes):
                mine = joined
        home |= dict.fromkeys(bits(mine), mine)
    return list(dict.fromkeys(home.values()))


def _without_contractions(prices: Prices) -> int:
    nodes = prices.part.nodes
    return set_of(
        k for k, node in enumerate(nodes) if prices.pruner.kind(node) is not Kind.CONTRACTION
    )


def _trimmed(prices: Prices, kinds: PartKinds, region: int) -> list[int]:
    """What is left of a set without what is better off outside."""
    if kinds.stays(region):
        return [region]
    part = prices.part
    number = {part.nodes[k]: k for k in bits(region)}
    left: Iterable[ir.Node] = prices.pruner.trimmed(part.members(region))
    return part.pieces(set_of(number[node] for node in left))


def _runs(prices: Prices, source: int, cuts: int) -> Iterator[int]:
    """The nodes between any two cut points of a set."""
    places = [0, *_cut_points(prices, source, cuts), source.bit_length()]
    for first, low in enumerate(places):
        for high in places[first + 1 :]:
            yield source & ((1 << high) - (1 << low))


def _cut_points(prices: Prices, source: int, cuts: int) -> Sequence[int]:
    """Numbers of nodes before which the fewest bytes cross, spread over the set."""
    numbers = bits(source)
    if len(numbers) <= cuts + 1:
        return numbers[1:]
    crossing = _crossing(prices, source)
    chosen = []
    for k in range(cuts):
        low, high = (1 + (len(numbers) - 1) * j // cuts for j in (k, k + 1))
        chosen.append(min(range(low, high), key=lambda j: (crossing[j], j)))
    return [numbers[j] for j in chosen]


def _crossing(prices: Prices, source: int) -> list[int]:
    """Bytes that the nodes before each place make for those behind it."""
    numbers = bits(source)
    place = {k: j for j, k in enumerate(numbers)}
    change = [0] * (len(numbers) + 1)
    for j, k in enumerate(numbers):
        for written in prices.traffic.writes[k]:
            last = (written.readers & source).bit_length() - 1
            change[j + 1] += written.size
            change[place.get(last, j) + 1] -= written.size
    total, crossing = 0, []
    for amount in change:
        total += amount
        crossing.append(total)
    return crossing


def _neighbours(prices: Prices, source: int) -> Iterator[int]:
    """A set with or without single nodes."""
    part = prices.part
    members = bits(source)
    yield source
    inner = [k for k in members if prices.pruner.kind(part.nodes[k]) is Kind.CONTRACTION]
    for k in inner[:MOST_CONTRACTIONS]:
        yield source & ~(1 << k) & ~part.before[k]
        yield source & ~(1 << k) & ~part.after[k]
    beside = 0
    for k in members:
        beside |= part.near[k]
    for k in bits(beside & ~source)[:MOST_BORDER]:
        yield source | 1 << k
    first = [k for k in members if not part.before[k] & source]
    last = [k for k in members if not part.after[k] & source]
    for k in (*first[:MOST_BORDER], *last[:MOST_BORDER]):
        yield source & ~(1 << k)
