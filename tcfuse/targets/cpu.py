"""The CPU target: loops to threads' chunks and vector lanes, freestanding C++ out.

The text is the same for every x86-64 level; the number of lanes is a macro of the compilation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcfuse.codegen.from_isl import nests
from tcfuse.codegen.lower import NestWriter
from tcfuse.codegen.prelude import kernel_prelude
from tcfuse.codegen.tensors import arrange, tensors_of
from tcfuse.errors import UnsupportedError
from tcfuse.mapping.accumulators import with_accumulators
from tcfuse.mapping.blocking import block_reductions
from tcfuse.mapping.contraction import contractions
from tcfuse.mapping.contraction_nest import place_contractions
from tcfuse.mapping.lanes import choose_lanes, mark_parallel
from tcfuse.mapping.nests import finish_loops, schedule_nests
from tcfuse.mapping.order import order_members
from tcfuse.mapping.packing import Nest, with_copies
from tcfuse.mapping.storage import Buffer, Memory, place_temporaries
from tcfuse.mapping.tiling import tile_transposes
from tcfuse.options import MappingOptions
from tcfuse.poly.dependences import Dependences, compute_dependences
from tcfuse.poly.proof import Proof, prove
from tcfuse.poly.scop import Scop, assuming, extract_scop
from tcfuse.poly.tree import Domain
from tcfuse.poly.tree_isl import to_yaml
from tcfuse.targets.base import Interface, KernelSource, Phase
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.fixed_sizes import with_fixed_interface, with_fixed_sizes
from tcfuse.tc.plain_names import plain_names
from tcfuse.tc.sema import check

MOST_TEXT = 8 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A compiled kernel with the texts of the stages that led to it."""

    source: KernelSource
    proof: Proof
    tree: str
    mapped: str


def compile_kernel(
    checked: CheckedDef,
    interface: Interface,
    name_hint: str,
    options: MappingOptions,
    fixed: Mapping[str, int] | None = None,
) -> Kernel:
    """The kernel of a definition.

    Args:
        checked: The definition, over view shapes.
        interface: The fused node's signature.
        name_hint: Operator names; a digest is appended.
        options: Everything that changes the code.
        fixed: Sizes that the kernel may take for granted; ``options.fix_sizes`` says when.

    Raises:
        UnsupportedError: The target cannot do this.
        OptionError: A fixed size is no size of the definition.
    """
    given = {} if fixed is None or options.fix_sizes == "never" else fixed
    checked, interface, sizes = _plainly_named(checked, interface, given)
    facts = interface.facts
    interface = with_fixed_interface(interface, sizes)
    name = _name(name_hint, str(checked.definition), str(interface), options.to_json())
    if options.fix_sizes == "before":
        checked, facts = with_fixed_sizes(checked, sizes), interface.facts
    prepared = with_accumulators(checked)
    prepared, contracted = _packed(prepared, facts, options)
    scop = extract_scop(prepared, facts)
    dependences = compute_dependences(scop)
    scheduled = schedule_nests(scop, dependences, options)
    tree = _mapped(scop, dependences, scheduled.tree, contracted, options)
    buffers = place_temporaries(scop, dependences, tree, options.private_depth)
    cells = {b.tensor: b.cells for b in buffers.values() if b.memory is not Memory.SHARED}
    proof = prove(scop, dependences, tree, reassociate=options.reassociate, cells=cells)
    ignored = "fixed sizes ignored: fix_sizes is never" if fixed and not sizes else None
    notes = tuple(note for note in (ignored, scheduled.note) if note)
    proof = replace(proof, notes=(*proof.notes, *notes))
    source = _source(
        name, checked, interface, assuming(scop, interface.facts), tree, buffers, options
    )
    placed = "".join(f"# {buffer}\n" for buffer in buffers.values())
    return Kernel(source, proof, to_yaml(scheduled.tree), placed + to_yaml(tree))


def _source(
    name: str,
    checked: CheckedDef,
    interface: Interface,
    scop: Scop,
    tree: Domain,
    buffers: Mapping[str, Buffer],
    options: MappingOptions,
) -> KernelSource:
    """The text of a mapped tree."""
    tensors = tensors_of(scop.checked, buffers)
    arena = arrange(scop.checked, buffers, tensors)
    writer = NestWriter(scop, tensors, options.accumulators, reciprocals=options.reassociate)
    phases, functions = [], []
    for number, phase in enumerate(writer.phases(nests(scop, tree))):
        symbol = f"{name}_{number}"
        phases.append(Phase(symbol, phase.extent, phase.cost))
        head = _head(symbol, interface.sizes, arena.declarations)
        functions.append("\n".join([*head, *phase.lines.text, "}"]))
    if not phases:
        raise UnsupportedError("no statement of it ever runs")
    definition = str(checked.definition)
    comment = "".join(f"// {line}\n" for line in definition.splitlines())
    text = f"{comment}\n{kernel_prelude()}\n" + "\n\n".join(functions) + "\n"
    if len(text) > MOST_TEXT:
        raise UnsupportedError(f"{len(text) >> 20} MiB of C++ are too much for a compiler")
    scratch = arena.shared_bytes, arena.local_bytes
    return KernelSource(name, text, interface, tuple(phases), *scratch, definition)


def _packed(
    checked: CheckedDef, facts: Sequence[str], options: MappingOptions
) -> tuple[CheckedDef, tuple[Nest, ...]]:
    """The definition with the copies that its contractions are faster with."""
    candidates = [s for s in checked.statements if s.reduction and s.comprehension.indices[1:]]
    if not candidates:
        return checked, ()
    scop = extract_scop(checked, facts)
    return with_copies(checked, contractions(scop, packing=options.shared_depth > 0))


def _mapped(
    scop: Scop,
    dependences: Dependences,
    tree: Domain,
    contracted: Sequence[Nest],
    options: MappingOptions,
) -> Domain:
    """The scheduled ``tree`` with its loops given to lanes, registers and threads."""
    tree = order_members(scop, tree)
    tree = place_contractions(
        scop, dependences, tree, contracted, rows=options.block, depth=options.shared_depth
    )
    tree = choose_lanes(scop, dependences, tree, reassociate=options.reassociate)
    tree = block_reductions(scop, dependences, tree, rows=options.block)
    tree = mark_parallel(tile_transposes(scop, tree))
    return finish_loops(scop, tree, options)


def _head(symbol: str, sizes: Sequence[str], declarations: Sequence[str]) -> list[str]:
    """The first lines of a phase's function."""
    return [
        f"TCF_KERNEL({symbol})(char* const* tensors, const int64_t* sizes, char* shared,",
        "    char* local, int64_t begin, int64_t end, int32_t* fault) {",
        "  (void)tensors; (void)sizes; (void)shared; (void)local; (void)begin;",
        "  (void)end; (void)fault;",
        *(f"  const int64_t {s} = sizes[{k}]; (void){s};" for k, s in enumerate(sizes)),
        *(f"  {line}" for line in declarations),
    ]


def _plainly_named(
    checked: CheckedDef, interface: Interface, given: Mapping[str, int]
) -> tuple[CheckedDef, Interface, dict[str, int]]:
    """All three with names that can stand in the texts of the stages."""
    definition, plain = plain_names(checked.definition, interface)
    if definition is not checked.definition:
        checked = check(definition, sizes=plain.sizes)
    names = dict(zip(interface.sizes, plain.sizes, strict=True))
    return checked, plain, {names.get(name, name): value for name, value in given.items()}


def _name(hint: str, *determining: str) -> str:
    """Operator names, then a digest of everything that determines the text."""
    digest = hashlib.sha256("\0".join(determining).encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', hint)}_{digest}"
