"""From a plan to its proof, on every target."""

from __future__ import annotations

from dataclasses import replace

from tcfuse.mapping.plan import Plan
from tcfuse.mapping.storage import Memory
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.proof import Proof, prove
from tcfuse.profile import timed


@timed("proof")
def proof_of(plan: Plan, options: MappingOptions, *, sizes_ignored: bool) -> Proof:
    """The proof of a plan, with a note for everything that it could not have.

    Args:
        plan: What is proved.
        options: The knobs that made it.
        sizes_ignored: Whether sizes were given that the knobs say to ignore.

    Raises:
        UnsupportedError: A claim does not hold; the sentence names it.
    """
    buffers = plan.buffers.values()
    cells = {b.tensor: b.cells for b in buffers if b.memory is not Memory.SHARED}
    proof = prove(
        plan.scop, plan.dependences, plan.tree, reassociate=options.reassociate, cells=cells
    )
    ignored = "fixed sizes ignored: fix_sizes is never" if sizes_ignored else None
    notes = tuple(note for note in (ignored, plan.scheduled.note) if note)
    return replace(proof, notes=(*proof.notes, *notes))
