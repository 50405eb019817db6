"""The CPU target: loops to threads' chunks and vector lanes, freestanding C++ out.

The text is the same for every x86-64 level; the number of lanes is a macro of the compilation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcfuse.codegen.from_isl import nests
from tcfuse.codegen.lower import NestWriter
from tcfuse.codegen.prelude import kernel_prelude
from tcfuse.codegen.streams import with_streams
from tcfuse.codegen.style import Style
from tcfuse.codegen.tensors import arrange, lanes_in_memory, tensors_of
from tcfuse.errors import UnsupportedError
from tcfuse.mapping.plan import plan_kernel
from tcfuse.mapping.shared_bytes import with_whole_bytes
from tcfuse.mapping.storage import Buffer
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.proof import Proof
from tcfuse.poly.scop import Scop, assuming
from tcfuse.poly.tree import Domain
from tcfuse.poly.tree_isl import to_yaml
from tcfuse.profile import timed
from tcfuse.targets.base import Compilation, Interface, KernelSource, Phase
from tcfuse.targets.naming import kernel_name, plainly_named
from tcfuse.targets.proved import proof_of
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.fixed_sizes import with_fixed_interface, with_fixed_sizes

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
    checked, interface, sizes = plainly_named(checked, interface, given)
    facts = interface.facts
    interface = with_fixed_interface(interface, sizes)
    name = kernel_name(name_hint, str(checked.definition), str(interface), options.to_json())
    if options.fix_sizes == "before":
        checked, facts = with_fixed_sizes(checked, sizes), interface.facts
    whole = with_whole_bytes(checked, interface, facts)
    checked, interface = whole.checked, whole.interface
    plan = plan_kernel(checked, whole.facts, options)
    scop, tree, buffers = plan.scop, plan.tree, plan.buffers
    proof = proof_of(plan, options, sizes_ignored=bool(fixed) and not sizes)
    source = _source(
        name, checked, interface, assuming(scop, interface.facts), tree, buffers, options
    )
    placed = "".join(f"# {buffer}\n" for buffer in buffers.values())
    return Kernel(source, proof, to_yaml(plan.scheduled.tree), placed + to_yaml(tree))


@timed("code generation")
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
    tensors = tensors_of(scop.checked, buffers, *lanes_in_memory(scop))
    tensors = with_streams(tensors, scop, options.streaming)
    arena = arrange(scop.checked, buffers, tensors)
    style = Style(
        options.accumulators,
        options.registers,
        options.streaming,
        options.vectors,
        options.reassociate,
    )
    writer = NestWriter(scop, tensors, style)
    phases, functions = [], []
    for number, phase in enumerate(writer.phases(nests(scop, tree))):
        symbol = f"{name}_{number}"
        phases.append(Phase(symbol, phase.extent, phase.cost))
        head = _head(symbol, interface.sizes, arena.declarations)
        functions.append("\n".join([*head, *phase.lines.text, "}"]))
    if not phases:  # all that is returned has no elements
        phases.append(Phase(f"{name}_0", "0", "0"))
        functions.append("\n".join([*_head(f"{name}_0", interface.sizes, ()), "}"]))
    definition = str(checked.definition)
    comment = "".join(f"// {line}\n" for line in definition.splitlines())
    text = f"{comment}\n{kernel_prelude()}\n" + "\n\n".join(functions) + "\n"
    if len(text) > MOST_TEXT:
        raise UnsupportedError(f"{len(text) >> 20} MiB of C++ are too much for a compiler")
    scratch = arena.shared_bytes, arena.local_bytes
    compilation = Compilation(options.instructions, options.hoisting, options.optimization)
    return KernelSource(name, text, interface, tuple(phases), *scratch, definition, compilation)


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
