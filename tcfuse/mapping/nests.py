"""The loops of a kernel before they are mapped: scheduled, tiled, scheduled anew inside tiles.

Source: "The Next 700 Accelerated Layers", section 4 (the order of the stages).
"""

from __future__ import annotations

from dataclasses import replace

from tcfuse.mapping.tiles import mark_separated, tile_outermost
from tcfuse.mapping.unrolling import mark_unrolled
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.dependences import Dependences
from tcfuse.poly.scheduling import Scheduled, Strategy, compute_schedule, reschedule_tiles
from tcfuse.poly.scop import Scop
from tcfuse.poly.tree import Domain
from tcfuse.profile import timed


@timed("schedule")
def schedule_nests(scop: Scop, dependences: Dependences, options: MappingOptions) -> Scheduled:
    """The tiled schedule of ``scop``, and what of the options it could not have."""
    scheduled = compute_schedule(
        scop,
        dependences,
        fusion=options.fusion,
        skewing=options.skewing,
        positive=options.positive,
        limit=options.isl_operations,
    )
    tiled = tile_outermost(scheduled.tree, options.tile)
    scheduled = Scheduled(tiled.tree, _together(scheduled.note, *tiled.notes))
    if not options.reschedules:
        return scheduled
    inner = Strategy(
        options.inner_fusion,
        options.inner_skewing,
        options.inner_positive,
        options.isl_operations,
    )
    again = reschedule_tiles(scop, dependences, scheduled.tree, inner)
    return replace(again, note=_together(scheduled.note, again.note))


def finish_loops(scop: Scop, tree: Domain, options: MappingOptions) -> Domain:
    """A mapped tree with the marks that only code generation reads."""
    unrolled = mark_unrolled(scop, tree, options.unroll)
    return mark_separated(unrolled) if options.separate_tiles else unrolled


def _together(*notes: str | None) -> str | None:
    return "; ".join(dict.fromkeys(note for note in notes if note)) or None
