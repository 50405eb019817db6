"""Schedule trees: the order in which a scop's statement instances run.

Immutable nodes that own their children, so a transformation is a function from tree to tree and
``match`` is the matcher.  isl's own schedules are used at two borders only: the scheduler's
result comes in, and the AST generator's argument goes out (``tree_isl``).

Nodes compare by identity (``eq=False``): isl's ``==`` is semantic on sets, raises on
multi-expressions, and its hash differs between equal sets.  Tests compare printed trees.

Source: Grosser, Verdoolaege, Cohen, "Polyhedral AST Generation Is More Than Scanning
Polyhedra", TOPLAS 37(4), 2015, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from tcfuse.poly import isl


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Nothing more to order."""


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """The root: every instance that runs."""

    instances: isl.UnionSet
    child: Tree


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Loops that may be interchanged if ``permutable``.

    Attributes:
        schedule: One quasi-affine function of the instances per member, outermost first.
        permutable: Tiling the members together is legal.
        coincident: Per member, whether its iterations are independent (parallel).
    """

    schedule: isl.MultiUnionPwAff
    permutable: bool
    coincident: tuple[bool, ...]
    child: Tree

    def __post_init__(self) -> None:
        members = self.schedule.dim(isl.dim_type.out)
        assert members == self.depth, f"{members} members but {self.depth} coincident flags"

    @property
    def depth(self) -> int:
        """Number of loops."""
        return len(self.coincident)


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """The part of the instances that a child of a sequence orders."""

    statements: tuple[str, ...]
    child: Tree


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """Children that run one after the other."""

    filters: tuple[Filter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """A mapping decision about the band below: ``parallel``, ``lanes``, ``block=6``."""

    name: str
    child: Tree

    @property
    def kind(self) -> str:
        """The name without what it is set to."""
        return self.name.partition("=")[0]


Tree: TypeAlias = Leaf | Domain | Band | Sequence | Filter | Mark


def rewrite(tree: Tree, rule: Callable[[Tree], Tree | None]) -> Tree:
    """Apply ``rule`` bottom-up; ``None`` keeps a node."""
    match tree:
        case Leaf():
            rebuilt: Tree = tree
        case Sequence(filters):
            rebuilt = Sequence(tuple(replace(f, child=rewrite(f.child, rule)) for f in filters))
        case Domain() | Band() | Filter() | Mark():
            rebuilt = replace(tree, child=rewrite(tree.child, rule))
        case _:
            assert_never(tree)
    return rule(rebuilt) or rebuilt


def below(tree: Tree) -> Iterator[Tree]:
    """``tree`` and every node below it, in pre-order."""
    yield tree
    match tree:
        case Sequence(filters):
            for f in filters:
                yield from below(f)
        case Domain() | Band() | Filter() | Mark():
            yield from below(tree.child)
        case Leaf():
            pass
