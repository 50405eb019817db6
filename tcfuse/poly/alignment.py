"""Which iterators of different statements walk the same dimension of the same tensors.

Loops can be shared by statements when every dependence between them stays within one iteration.
The candidates are read off the accesses: two iterators that subscript the same dimension of a
tensor belong together.  isl then checks each candidate exactly.

Source: the alignment phase of loop fusion, as in Bondhugula et al., "A Practical Automatic
Polyhedral Parallelizer and Locality Optimizer", PLDI 2008 (zero-distance fusion).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tcfuse.poly import isl
from tcfuse.poly.polynomial import polynomial
from tcfuse.poly.scop import Scop, Statement, accesses
from tcfuse.poly.volume import tensor_volume
from tcfuse.tc.ast import Access, Var

Row = Mapping[str, str]  # statement -> the iterator that follows the shared loop


@dataclass(frozen=True)
class Subscripts:
    """The dimensions of tensors that one statement walks with one plain iterator each.

    Attributes:
        walked: ``(tensor, dimension, iterator, offset)``.
    """

    walked: tuple[tuple[str, int, str, int], ...]

    @cached_property
    def tensors(self) -> frozenset[str]:
        """The tensors among them."""
        return frozenset(tensor for tensor, _, _, _ in self.walked)


def subscripts_of(statement: Statement) -> Subscripts:
    """The plain subscripts of a statement, ``i`` and ``i + 3``."""
    written = statement.comprehension
    target = Access(written.tensor, tuple(Var(name) for name in written.indices))
    found = dict.fromkeys(
        walked
        for access in (target, *accesses(statement))
        for walked in _plain(access, statement)
    )
    return Subscripts(tuple(found))


def _plain(access: Access, statement: Statement) -> Iterator[tuple[str, int, str, int]]:
    for dimension, subscript in enumerate(access.subscripts):
        value = polynomial(subscript, {})
        if value is None:
            continue
        terms = dict(value.terms)
        offset = terms.pop((), 0)
        if len(terms) == 1:
            ((monomial, coefficient),) = terms.items()
            if coefficient == 1 and len(monomial) == 1 and monomial[0] in statement.iterators:
                yield access.tensor, dimension, monomial[0], offset


def align(
    scop: Scop,
    rows: Sequence[Row],
    subscripts: Mapping[str, Subscripts],
    statement: Statement,
    free: Sequence[str],
) -> list[str | None]:
    """For each shared loop, the iterator of ``statement`` that belongs to it.

    Args:
        scop: Where the statements are from.
        rows: The shared loops of a cluster.
        subscripts: Of every statement of the cluster, and of ``statement``.
        statement: Who wants to join.
        free: Its iterators that may follow a shared loop.
    """
    votes: dict[tuple[int, str], float] = defaultdict(float)
    mine = [w for w in subscripts[statement.name].walked if w[2] in free]
    for k, row in enumerate(rows):
        for name, iterator in row.items():
            theirs = {(t, d): o for t, d, i, o in subscripts[name].walked if i == iterator}
            for tensor, dimension, candidate, offset in mine:
                if (tensor, dimension) in theirs:
                    exact = theirs[tensor, dimension] == offset
                    votes[k, candidate] += tensor_volume(scop, tensor) * (4 if exact else 1)
    chosen: list[str | None] = [None] * len(rows)
    for (k, candidate), _ in sorted(votes.items(), key=lambda v: (-v[1], v[0])):
        if chosen[k] is None and candidate not in chosen:
            chosen[k] = candidate
    return chosen


def as_schedule(scop: Scop, rows: Sequence[Row]) -> isl.MultiUnionPwAff:
    """The shared loops as a partial schedule."""
    sizes = ", ".join(scop.checked.sizes)
    head = f"[{sizes}] -> " if sizes else ""  # isl reads [] as the whole schedule
    texts = []
    for row in rows:
        pieces = (
            f"{scop.statement(name).instance()} -> [({iterator})]"
            for name, iterator in row.items()
        )
        texts.append(f"{{ {'; '.join(pieces)} }}")
    return isl.MultiUnionPwAff.read_from_str(scop.context, f"{head}[{', '.join(texts)}]")
