"""Everything that is decided about a kernel for a GPU before its text is written.

The loops that become lanes are those a team of threads divides among itself; the copies and the
register blocks that contractions get on a CPU are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping.accumulators import with_accumulators, with_registers
from tcfuse.mapping.apart import contractions_apart
from tcfuse.mapping.lanes import choose_lanes, mark_parallel
from tcfuse.mapping.nests import finish_loops, schedule_nests
from tcfuse.mapping.order import order_members
from tcfuse.mapping.plan import Plan
from tcfuse.mapping.row_copies import plan_with_rows
from tcfuse.mapping.splitting import split_reductions
from tcfuse.mapping.spreading import spread_loops
from tcfuse.mapping.storage import Buffer, Memory, place_temporaries
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.dependences import compute_dependences
from tcfuse.poly.scop import extract_scop
from tcfuse.profile import timed
from tcfuse.tc.checked import CheckedDef

MOST_THREAD_BYTES = 4096  # of a row that each thread has for itself


@timed("mapping")
def plan_gpu_kernel(
    checked: CheckedDef, facts: Sequence[str], options: MappingOptions, cuda: CudaOptions
) -> Plan:
    """The plan for a definition.

    Args:
        checked: In kernel form.
        facts: Conditions on its sizes that hold, as isl text.
        options: The knobs of every target.
        cuda: Those of this one.
    """
    checked = with_accumulators(checked)
    split = split_reductions(checked, parts=cuda.split, reassociate=options.reassociate)
    if split is not checked:
        plan = plan_with_rows(split, lambda copied: _planned(copied, facts, options))
        parts = split.tensors.keys() - checked.tensors.keys()
        if all(plan.buffers[name].memory is Memory.SHARED for name in parts):
            return plan  # else the parts have ended up inside one team, where they do not help
    return plan_with_rows(checked, lambda copied: _planned(copied, facts, options))


def _planned(checked: CheckedDef, facts: Sequence[str], options: MappingOptions) -> Plan:
    """The definition scheduled and mapped, its sums in registers."""
    plan = _mapped(checked, facts, options)
    if spilled := plan.spilled():
        return _mapped(with_registers(checked, spilled), facts, options)
    return plan


def _mapped(checked: CheckedDef, facts: Sequence[str], options: MappingOptions) -> Plan:
    """The definition scheduled and mapped as it is."""
    scop = extract_scop(checked, facts)
    dependences = compute_dependences(scop)
    scheduled = schedule_nests(scop, dependences, options)
    tree = contractions_apart(
        scop,
        dependences,
        scheduled.tree,
        lambda part: schedule_nests(part, dependences, options).tree,
    )
    tree = order_members(scop, tree)
    tree = choose_lanes(scop, dependences, tree, reassociate=options.reassociate, vectors=False)
    tree = spread_loops(scop, dependences, mark_parallel(tree), reassociate=options.reassociate)
    tree = finish_loops(scop, tree, options)
    depth = options.private_depth
    buffers = place_temporaries(scop, dependences, tree, depth)
    large = {name for name, buffer in buffers.items() if _is_too_large(buffer, checked)}
    if large:
        buffers = place_temporaries(scop, dependences, tree, depth, large)
    return Plan(checked, scop, dependences, scheduled, tree, buffers)


def _is_too_large(buffer: Buffer, checked: CheckedDef) -> bool:
    """Whether a row that each thread has for itself is none that a thread can have."""
    if buffer.memory is not Memory.ROW or not buffer.lanes:
        return False
    kind = checked.tensors[buffer.tensor]
    total = kind.dtype.bytes
    for dimension in buffer.kept:
        size = kind.shape[dimension]
        if not isinstance(size, int):
            return True
        total *= size
    return total > MOST_THREAD_BYTES
