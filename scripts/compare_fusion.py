"""Two ways to have Tensor Comprehensions' fusion strategies without isl's merge callback.

*ours*: ``poly.clusters`` decides, statement by statement, who shares outer loops; isl
schedules what is left.  *emulated*: isl schedules everything with fusion at its most, the
parallel loops of each fused group are counted, and a group that keeps fewer than its statements
have alone (three are enough) is scheduled anew, statement by statement.

For each program: the nests, the parallel loops of all statements together, the temporaries that
must be stored whole, and isl's operations.  ``python -m scripts.compare_fusion`` prints the
table of docs/decisions/fusion-of-loops.md.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from tcfuse.mapping.accumulators import with_accumulators
from tcfuse.mapping.lanes import mark_parallel
from tcfuse.mapping.storage import Memory, place_temporaries
from tcfuse.poly import isl
from tcfuse.poly.dependences import Dependences, compute_dependences
from tcfuse.poly.proof import prove
from tcfuse.poly.scheduling import compute_schedule
from tcfuse.poly.scop import Scop, extract_scop
from tcfuse.poly.tree import Band, Domain, Filter, Sequence, Tree
from tcfuse.poly.tree_isl import from_isl, statement_order
from tests.conformance.subjects import subjects

ENOUGH = 3
MOST = 200_000_000  # operations after which a way counts as too slow

Way = Callable[[Scop, Dependences], Domain]


def ours(scop: Scop, dependences: Dependences) -> Domain:
    """The product's schedule."""
    return compute_schedule(scop, dependences).tree


def emulated(scop: Scop, dependences: Dependences) -> Domain:
    """Isl's schedule with groups taken apart that lose parallel loops."""
    context = scop.context
    context.set_schedule_serialize_sccs(0)
    context.set_schedule_maximize_coincidence(0)
    whole = _by_isl(scop, dependences, scop.domain)
    context.set_schedule_maximize_coincidence(1)
    context.set_schedule_serialize_sccs(1)
    parts: list[Filter] = []
    for group in _groups(whole, tuple(s.name for s in scop.statements)):
        alone = [_alone(scop, name) for name in group.statements]
        if _shared(group.child) >= min(max(alone), ENOUGH):
            parts.append(group)
            continue
        for name in statement_order(group.statements):
            tree = _by_isl(scop, dependences, isl.part_of(scop.domain, (name,)))
            parts.append(Filter((name,), tree))
    child = parts[0].child if len(parts) == 1 else Sequence(tuple(parts))
    return Domain(scop.domain, child)


def _by_isl(scop: Scop, dependences: Dependences, domain: isl.UnionSet) -> Tree:
    ordered = dependences.all.intersect_domain(domain).intersect_range(domain)
    flow = dependences.flow.intersect_domain(domain).intersect_range(domain)
    schedule = (
        isl.ScheduleConstraints.on_domain(domain)
        .set_context(scop.parameters)
        .set_validity(ordered)
        .set_coincidence(ordered)
        .set_proximity(flow)
        .compute_schedule()
    )
    return from_isl(schedule.get_root().child(0))


def _groups(tree: Tree, names: tuple[str, ...]) -> list[Filter]:
    """The parts of the outermost sequences."""
    if not isinstance(tree, Sequence):
        return [Filter(names, tree)]
    return [g for f in tree.filters for g in _groups(f.child, f.statements)]


def _shared(tree: Tree) -> int:
    """Parallel members of the outermost band."""
    return sum(tree.coincident) if isinstance(tree, Band) else 0


def _alone(scop: Scop, name: str) -> int:
    """Parallel loops of one statement by itself."""
    statement = scop.statement(name)
    return len([i for i in statement.iterators if i not in statement.reduction])


def parallel_loops(tree: Tree, names: tuple[str, ...]) -> dict[str, int]:
    """For each statement, the parallel loops around it that all its neighbours share."""
    match tree:
        case Sequence(filters):
            found: dict[str, int] = {}
            for f in filters:
                found |= parallel_loops(f.child, f.statements)
            return found
        case Band():
            return dict.fromkeys(names, sum(tree.coincident))
        case _:
            return dict.fromkeys(names, 0)


@contextlib.contextmanager
def _unlimited(context: isl.Context, operations: int) -> Iterator[None]:
    del context, operations
    yield


def operations(name: str, way: Way) -> int | None:
    """Isl operations of a way, within a tenth; ``None`` when they are too many."""
    known, isl.limited = isl.limited, _unlimited  # the product's own limits would hide it
    try:
        limit = 1000
        while limit < MOST:
            scop, dependences = model(name)
            try:
                with known(scop.context, limit):
                    way(scop, dependences)
            except isl.OperationLimit:
                limit += limit // 10
            else:
                return limit
        return None
    finally:
        isl.limited = known


def model(name: str) -> tuple[Scop, Dependences]:
    """The polyhedral model of a program, as the target sees it."""
    subject = subjects()[name]
    scop = extract_scop(with_accumulators(subject.checked), subject.interface.facts)
    return scop, compute_dependences(scop)


def row(name: str, way: Way) -> tuple[str, ...]:
    """One program under one way."""
    scop, dependences = model(name)
    try:
        with isl.limited(scop.context, MOST):
            tree = way(scop, dependences)
    except isl.OperationLimit:
        return ("-", "-", "-", "too many")
    prove(scop, dependences, tree)
    names = tuple(s.name for s in scop.statements)
    loops = sum(parallel_loops(tree.child, names).values())
    buffers = place_temporaries(scop, dependences, mark_parallel(tree)).values()
    whole = sum(b.memory is Memory.SHARED for b in buffers)
    count = operations(name, way)
    spent = "too many" if count is None else f"{count / 1000:.0f} k"
    return (str(len(_groups(tree.child, names))), str(loops), str(whole), spent)


def main() -> int:
    """Print the table."""
    chosen = [
        "softmax", "layer_norm", "broadcast", "pool", "many_outputs", "two_groups",
        "group_norm", "chain", "nested", "kronecker", "paper_mlp3", "paper_wavenet",
        "paper_batch_norm", "paper_group_norm", "paper_softmax_c", "paper_conv_gradients",
        "paper_lut2", "paper_mobilenet",
    ]  # fmt: skip
    write = sys.stdout.write
    write("| program | nests | parallel loops | whole tensors | operations |\n")
    write("|---|---|---|---|---|\n")
    for name in chosen:
        mine, theirs = row(name, ours), row(name, emulated)
        cells = [f"{a} / {b}" for a, b in zip(mine, theirs, strict=True)]
        write(f"| {name.removeprefix('paper_')} | {' | '.join(cells)} |\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
