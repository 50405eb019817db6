"""Which nodes of a part the rules for regions are about, as sets of numbers.

A rule that is about none of a region's nodes need not look at them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.graph.adoption import PIECES
from tcfuse.graph.cuts import NORMALISATIONS, joins
from tcfuse.graph.part import Part, bits, set_of
from tcfuse.graph.worth import Pruner
from tcfuse.opdef import Kind


@dataclass(frozen=True, slots=True)
class PartKinds:
    """Nodes of a part by what rules ask.

    Attributes:
        contractions: Products and convolutions.
        pieces: Nodes whose result lies in pieces elsewhere.
        normalisations: Nodes that reduce rows and read them again.
        joins: Nodes that put values side by side along an outer axis.
        leaving: Nodes that may be better off outside when they are at a border.
        succs: For each node, those of the part that read it.
        preds: For each node, those of the part that it reads.
    """

    contractions: int
    pieces: int
    normalisations: int
    joins: int
    leaving: int
    preds: tuple[int, ...]
    succs: tuple[int, ...]

    @classmethod
    def of(cls, part: Part, pruner: Pruner) -> PartKinds:
        """The kinds of the nodes of one part."""
        nodes = part.nodes
        number = {node: k for k, node in enumerate(nodes)}
        preds, succs = [0] * len(nodes), [0] * len(nodes)
        for k, node in enumerate(nodes):
            for value in node.inputs:
                maker = value.producer() if value is not None else None
                if maker is not None and maker in number:
                    preds[k] |= 1 << number[maker]
                    succs[number[maker]] |= 1 << k
        return cls(
            contractions=set_of(
                k for n, k in number.items() if pruner.kind(n) is Kind.CONTRACTION
            ),
            pieces=set_of(k for n, k in number.items() if n.op_type in PIECES),
            normalisations=set_of(k for n, k in number.items() if n.op_type in NORMALISATIONS),
            joins=set_of(k for n, k in number.items() if joins(n)),
            leaving=set_of(k for n, k in number.items() if pruner.may_leave(n)),
            preds=tuple(preds),
            succs=tuple(succs),
        )

    def stays(self, region: int) -> bool:
        """Whether none of the nodes that may leave is at the border of a region."""
        return all(
            self.preds[k] & region and self.succs[k] & region
            for k in bits(region & self.leaving)
        )
