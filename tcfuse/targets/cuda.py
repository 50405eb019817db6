"""The CUDA target: parallel loops to the grid, lanes to the threads of teams, CUDA C out.

Source: "The Next 700 Accelerated Layers", section 4 (mapping to blocks and threads); the text
is one template a phase, of which every launch is an instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from tcfuse.codegen.cuda.kernel import Kernel as Shape
from tcfuse.codegen.cuda.launch import Launch
from tcfuse.codegen.cuda.nest import phases_of
from tcfuse.codegen.cuda.phases import PhaseWriter
from tcfuse.codegen.from_isl import nests
from tcfuse.codegen.tensors import rounded_bytes, tensors_of
from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import UnsupportedError
from tcfuse.mapping.gpu import plan_gpu_kernel
from tcfuse.mapping.shared_bytes import with_whole_bytes
from tcfuse.mapping.storage import Memory
from tcfuse.mapping_options import MappingOptions
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.proof import Proof
from tcfuse.poly.scop import assuming
from tcfuse.poly.tree import Domain
from tcfuse.poly.tree_isl import to_yaml
from tcfuse.profile import timed
from tcfuse.targets.base import CudaPhase, CudaSource, Interface
from tcfuse.targets.naming import kernel_name, plainly_named
from tcfuse.targets.proved import proof_of
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.fixed_sizes import with_fixed_interface, with_fixed_sizes

MOST_TEXT = 1 << 20
MOST_PARAMETERS = 500  # of 8 bytes; CUDA has room for 4 KiB of them


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A compiled kernel with the texts of the stages that led to it."""

    source: CudaSource
    proof: Proof
    tree: str
    mapped: str


def compile_kernel(
    checked: CheckedDef,
    interface: Interface,
    name_hint: str,
    options: MappingOptions,
    cuda: CudaOptions,
    fixed: Mapping[str, int] | None = None,
) -> Kernel:
    """The kernel of a definition, as CUDA C.

    Args:
        checked: The definition, over view shapes.
        interface: The fused node's signature.
        name_hint: Operator names; a digest is appended.
        options: What changes the code on every target.
        cuda: What changes it on this one.
        fixed: Sizes that the kernel may take for granted; ``options.fix_sizes`` says when.

    Raises:
        UnsupportedError: The target cannot do this.
        OptionError: A fixed size is no size of the definition.
    """
    given = {} if fixed is None or options.fix_sizes == "never" else fixed
    checked, interface, sizes = plainly_named(checked, interface, given)
    facts = interface.facts
    interface = with_fixed_interface(interface, sizes)
    texts = (str(checked.definition), str(interface), options.to_json(), str(cuda))
    name = kernel_name(name_hint, *texts)
    if options.fix_sizes == "before":
        checked, facts = with_fixed_sizes(checked, sizes), interface.facts
    whole = with_whole_bytes(checked, interface, facts)
    checked, interface = whole.checked, whole.interface
    plan = plan_gpu_kernel(checked, whole.facts, options, cuda)
    buffers = plan.buffers
    proof = proof_of(plan, options, sizes_ignored=bool(fixed) and not sizes)
    scop = assuming(plan.scop, interface.facts)
    tensors = tensors_of(scop.checked, buffers, Polynomial.factor("TCF_L"))
    scratch, offsets = Polynomial(), {}
    for buffer in buffers.values():
        if buffer.memory is Memory.SHARED:
            offsets[buffer.tensor] = scratch
            scratch = scratch + rounded_bytes(tensors[buffer.tensor])
    shape = Shape(
        name,
        scop,
        tensors,
        buffers,
        interface.sizes,
        offsets,
        scratch,
        options.reassociate,
        options.numerics,
    )
    source = _source(shape, interface, plan.tree, options, cuda, str(checked.definition))
    placed = "".join(f"# {buffer}\n" for buffer in buffers.values())
    return Kernel(source, proof, to_yaml(plan.scheduled.tree), placed + to_yaml(plan.tree))


@timed("code generation")
def _source(
    shape: Shape,
    interface: Interface,
    tree: Domain,
    options: MappingOptions,
    cuda: CudaOptions,
    definition: str,
) -> CudaSource:
    """The text of a mapped tree, and how it is launched."""
    if len(shape.parameters) > MOST_PARAMETERS:
        raise UnsupportedError(f"{len(shape.parameters)} parameters are more than CUDA has")
    writer = PhaseWriter(shape, cuda)
    texts, phases, rows = [], [], []
    for number, nest in enumerate(phases_of(nests(shape.scop, tree), shape.scop)):
        phase, needed = writer.write(nest, number)
        texts.append(phase.text)
        phases.append(CudaPhase(phase.launches))
        rows.append(needed)
    if not phases:  # all that is returned has no elements
        launch = Launch(f"{shape.name}_0", "0", 32)
        texts.append(shape.idle(launch))
        phases.append(CudaPhase((launch,)))
    comment = "".join(f"// {line}\n" for line in definition.splitlines())
    shared = "extern __shared__ __align__(16) char tcf_shared[];"
    head = f'{comment}\n#include "tcf_device.hpp"\n\n{shared}\n'
    text = "\n".join([head, *texts])
    if len(text) > MOST_TEXT:
        raise UnsupportedError(f"{len(text) >> 20} MiB of CUDA C are too much for a compiler")
    scratch = shape.scratch
    if most := _most(rows):
        scratch = scratch + Polynomial.factor(most)
    contract = options.numerics != "strict"
    return CudaSource(
        shape.name, text, interface, tuple(phases), str(scratch), definition, contract
    )


def _most(values: list[Polynomial]) -> str:
    """The largest of some numbers of bytes; phases use the same memory for their rows."""
    texts = list(dict.fromkeys(str(v) for v in values if v.terms))
    return reduce(lambda a, b: f"tcf_max({a}, {b})", texts) if texts else ""
