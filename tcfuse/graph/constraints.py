"""What a person asks of a plan: nodes left alone, kept together or apart, small regions.

Nodes are named by patterns: a node's name or its operator, with ``*`` and ``?`` as in names of
files.  A pattern without a node is an error, as it is a slip more often than not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import onnx_ir as ir

from tcfuse.errors import OptionError

LEAVE, TOGETHER, APART, MAX_NODES = "leave", "together", "apart", "max-nodes"


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """One wish.

    Attributes:
        kind: Its flag.
        text: The flag and what was given with it.
        groups: The nodes of each pattern.
        most: Nodes of a region at most; 0 is no limit.
    """

    kind: str
    text: str
    groups: tuple[frozenset[ir.Node], ...] = ()
    most: int = 0

    def allows(self, region: Collection[ir.Node]) -> bool:
        """Whether a plan that grants the wish may have ``region``."""
        if self.kind == MAX_NODES:
            return len(region) <= self.most
        touched = [not group.isdisjoint(region) for group in self.groups]
        if self.kind == TOGETHER:
            return all(touched) or not any(touched)
        return not all(touched)

    @property
    def required(self) -> frozenset[ir.Node]:
        """Nodes that have to be in one region, or none."""
        return frozenset().union(*self.groups) if self.kind == TOGETHER else frozenset()

    @property
    def nodes(self) -> frozenset[ir.Node]:
        """The nodes that it names."""
        return frozenset().union(*self.groups)


def constraints(
    graphs: Iterable[Iterable[ir.Node]],
    *,
    leave: Sequence[str] = (),
    together: Sequence[str] = (),
    apart: Sequence[str] = (),
    max_nodes: int = 0,
) -> tuple[Constraint, ...]:
    """The wishes for a model, with the nodes that they name.

    Args:
        graphs: The nodes of the main graph and of every body.
        leave: Patterns of nodes that stay with ONNX Runtime.
        together: Patterns with commas between, each of one node: one region has all of them.
        apart: Patterns with commas between: no region has a node of each.
        max_nodes: Nodes of a region at most; 0 for as many as are legal.

    Raises:
        OptionError: A pattern names nothing, or too much, or there is nothing beside it.
    """
    nodes = [list(graph) for graph in graphs]
    everything = [node for graph in nodes for node in graph]
    found: list[Constraint] = []
    for text in leave:
        found.append(Constraint(LEAVE, f"{LEAVE} {text}", (_named(LEAVE, text, everything),)))
    for kind, texts in ((TOGETHER, together), (APART, apart)):
        for text in texts:
            patterns = [part.strip() for part in text.split(",")]
            if len(patterns) < 2:
                raise OptionError(f"--{kind} {text!r} needs two names with a comma between")
            groups = tuple(_named(kind, pattern, everything) for pattern in patterns)
            if kind == TOGETHER:
                _check_single(text, patterns, groups, nodes)
            found.append(Constraint(kind, f"{kind} {text}", groups))
    if max_nodes:
        found.append(Constraint(MAX_NODES, f"{MAX_NODES} {max_nodes}", most=max_nodes))
    return tuple(found)


def _named(kind: str, pattern: str, nodes: Iterable[ir.Node]) -> frozenset[ir.Node]:
    """The nodes that a pattern names."""
    found = frozenset(
        node
        for node in nodes
        if fnmatchcase(node.name or "", pattern) or fnmatchcase(node.op_type, pattern)
    )
    if not found:
        raise OptionError(f"--{kind}: no node and no operator of the model is {pattern!r}")
    return found


def _check_single(
    text: str,
    patterns: Sequence[str],
    groups: Sequence[frozenset[ir.Node]],
    graphs: Sequence[Sequence[ir.Node]],
) -> None:
    """One node a pattern, all of one graph."""
    for pattern, group in zip(patterns, groups, strict=True):
        if len(group) > 1:
            raise OptionError(
                f"--{TOGETHER} {text}: {pattern!r} names {len(group)} nodes; name one"
            )
    named = frozenset().union(*groups)
    if not any(named <= set(graph) for graph in graphs):
        raise OptionError(f"--{TOGETHER} {text}: the nodes are not in one graph")
