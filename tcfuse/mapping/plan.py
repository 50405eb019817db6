"""Everything that is decided about a kernel before its text is written.

Source: "The Next 700 Accelerated Layers", section 4 (the order of the stages).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcfuse.mapping.accumulators import with_accumulators, with_registers
from tcfuse.mapping.blocking import GROUPS, block_reductions
from tcfuse.mapping.chains import chained
from tcfuse.mapping.contraction import contractions
from tcfuse.mapping.contraction_nest import place_contractions
from tcfuse.mapping.groups import with_groups
from tcfuse.mapping.lanes import choose_lanes, mark_parallel
from tcfuse.mapping.nests import finish_loops, schedule_nests
from tcfuse.mapping.order import order_members
from tcfuse.mapping.packing import Nest, with_copies
from tcfuse.mapping.padding import with_padding
from tcfuse.mapping.reread import with_rows
from tcfuse.mapping.storage import Buffer, Memory, place_temporaries
from tcfuse.mapping.tables import with_tables
from tcfuse.mapping.tiling import tile_transposes
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.dependences import Dependences, compute_dependences
from tcfuse.poly.scheduling import Scheduled
from tcfuse.poly.scop import Scop, extract_scop
from tcfuse.poly.tree import Domain
from tcfuse.profile import timed
from tcfuse.tc.checked import CheckedDef


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is decided about a kernel before anything is written.

    Attributes:
        checked: The definition without the copies that were added to it.
        tree: The mapped schedule.
        chained: Whether contractions have nests of their own inside loops that they share.
    """

    checked: CheckedDef
    scop: Scop
    dependences: Dependences
    scheduled: Scheduled
    tree: Domain
    buffers: Mapping[str, Buffer]
    chained: bool = False

    def spilled(self) -> set[str]:
        """Temporaries kept whole that one sum alone is written to."""
        writers = Counter(s.comprehension.tensor for s in self.checked.statements)
        sums = {
            s.comprehension.tensor
            for s in self.checked.statements
            if s.reduction and s.comprehension.assign.resets
        }
        kept = {Memory.SHARED, Memory.ROW} if self.chained else {Memory.SHARED}
        whole = {b.tensor for b in self.buffers.values() if b.memory in kept}
        return {t for t in sums & whole if writers[t] == 1}


@timed("mapping")
def plan_kernel(checked: CheckedDef, facts: Sequence[str], options: MappingOptions) -> Plan:
    """The plan for a definition.

    Args:
        checked: In kernel form.
        facts: Conditions on its sizes that hold, as isl text.
        options: The knobs.
    """
    grouped = with_groups(checked)
    padded = with_padding(grouped) if options.reassociate else grouped
    checked = with_accumulators(with_rows(with_tables(padded)))
    plan = _planned(checked, facts, options)
    if spilled := plan.spilled():
        plan = _planned(with_registers(plan.checked, spilled), facts, options)
    return plan


def _planned(checked: CheckedDef, facts: Sequence[str], options: MappingOptions) -> Plan:
    """The definition scheduled and mapped."""
    packed, contracted = _packed(checked, facts, options)
    scop = extract_scop(packed, facts)
    dependences = compute_dependences(scop)
    scheduled = schedule_nests(scop, dependences, options)
    chain = None
    if options.fusion == "preserve" and not options.tile and not options.reschedules:
        chain = chained(
            scop,
            dependences,
            scheduled.tree,
            contracted,
            lambda part: schedule_nests(part, dependences, options).tree,
        )
    tree = scheduled.tree if chain is None else chain
    tree = _mapped(scop, dependences, tree, contracted, options, inside=chain is not None)
    buffers = place_temporaries(scop, dependences, tree, options.private_depth)
    return Plan(checked, scop, dependences, scheduled, tree, buffers, chain is not None)


def _packed(
    checked: CheckedDef, facts: Sequence[str], options: MappingOptions
) -> tuple[CheckedDef, tuple[Nest, ...]]:
    """The definition with the copies that its contractions are faster with."""
    candidates = [s for s in checked.statements if s.reduction and s.comprehension.indices[1:]]
    if not candidates:
        return checked, ()
    scop = extract_scop(checked, facts)
    packing, rank = options.shared_depth > 0, options.lane_choice
    return with_copies(checked, contractions(scop, packing=packing, rank=rank))


def _mapped(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    contracted: Sequence[Nest],
    options: MappingOptions,
    *,
    inside: bool,
) -> Domain:
    """The scheduled ``tree`` with its loops given to lanes, registers and threads."""
    tree, vectors = order_members(scop, tree), options.vectors or GROUPS
    tree = place_contractions(
        scop,
        dependences,
        tree,
        contracted,
        rows=options.block,
        vectors=vectors,
        depth=options.shared_depth,
        inside=inside,
    )
    tree = choose_lanes(
        scop, dependences, tree, reassociate=options.reassociate, rank=options.lane_choice
    )
    tree = block_reductions(scop, dependences, tree, rows=options.block, vectors=vectors)
    tree = mark_parallel(tile_transposes(scop, tree))
    return finish_loops(scop, tree, options)
