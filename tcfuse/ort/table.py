"""Kernels' interfaces as the C table that the operator shell runs on (``glue/tcf_region.h``).

Everything that depends on sizes becomes C: the expressions of an interface are C already, over
names that the generated functions declare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tcfuse.ort.c_text import array, quote
from tcfuse.ort.images import ImageData
from tcfuse.ort.operators import Naming, Operator
from tcfuse.ort.table_cpu import cpu_fields, cpu_parts
from tcfuse.ort.table_cuda import HEAD, cuda_fields, cuda_parts
from tcfuse.ort.table_sizes import agree, derive, needs, shape
from tcfuse.targets.base import Interface, Port
from tcfuse.targets.compilers import Level
from tcfuse.targets.places import Places, dimensions, origins
from tcfuse.types import DType, Size

_NUMBERED_APART = {DType.UINT2: 24, DType.INT2: 25, DType.FLOAT8E8M0: 26}
"""Numbers in ONNX Runtime's C interface where they are not those of ``TensorProto``."""


def table(
    operators: Sequence[Operator],
    levels: Sequence[Level],
    naming: Naming | None = None,
    images: ImageData | None = None,
    block: int = 0,
) -> str:
    """The C text that describes ``operators``.

    Args:
        operators: In the order of their numbers.
        levels: What their kernels for the CPU are compiled for.
        naming: What they are called.
        images: Where the code of their kernels for GPUs lies; ``None`` when there are none.
        block: Channels in a block of the layout that they work on; 0 for plain tensors.
    """
    naming, n = naming or Naming(), len(operators)
    numbered = list(enumerate(operators))
    regions = ("\n".join((*_region(k, o, levels, naming, images), "")) for k, o in numbered)
    rows = "".join(f"  {_row(k, o, naming.operator(o.name))},\n" for k, o in numbered)
    return "\n".join(
        (
            '#include "tcf_region.h"\n' if images is None else HEAD,
            *regions,
            f"const TcfRegion tcf_regions[] = {{\n{rows}}};\n",
            f"const int tcf_n_regions = {n};",
            f"const char tcf_domain[] = {quote(naming.domain)};",
            f"const int tcf_block = {block};",
            f"TcfOp tcf_ops[TCF_N_LEVELS * {n}];",
            f"TcfOp tcf_gpu_ops[TCF_N_GPU_PROVIDERS * {n if images else 1}];",
            f"const TcfGpu *const tcf_gpu = {'&tcf_cuda_gpu' if images else 'NULL'};\n",
        )
    )


def _region(
    k: int,
    operator: Operator,
    levels: Sequence[Level],
    naming: Naming,
    images: ImageData | None,
) -> Iterator[str]:
    """The functions and arrays of operator number ``k``."""
    interface, scratch = operator.interface, list[str]()
    assert re.fullmatch(r"[A-Za-z_]\w*", operator.name), f"{operator.name!r} is no identifier"
    yield f"/* {operator.name} */"
    yield from _ports(k, interface)
    yield from derive(k, interface)
    if operator.cpu is not None:
        yield from cpu_parts(k, operator.cpu, levels)
        scratch += [operator.cpu.shared_bytes, operator.cpu.local_bytes]
    if operator.cuda is not None:
        assert images is not None, f"nobody has the code of {operator.name}"
        yield from cuda_parts(k, operator.cuda, images)
        scratch.append(operator.cuda.source.scratch_bytes)
    places = Places(interface, origins(interface), ports=naming.ports)
    yield agree(k, interface, scratch, places)
    yield shape(k, interface, [size for _, _, size in dimensions(interface.outputs)])


def _ports(k: int, interface: Interface) -> Iterator[str]:
    """What is known of the tensors, and of the sizes of their dimensions."""
    names, read = interface.sizes, origins(interface)
    output_sizes = [size for _, _, size in dimensions(interface.outputs)]
    kinds = (f"{{{element_type(p.type.dtype)}, {p.type.rank}}}" for p in _tensors(interface))
    yield array(f"const TcfPort ports_{k}[]", kinds)
    yield array(f"const int32_t origins_{k}[]", (str(read.get(name, -1)) for name in names))
    yield array(f"const int32_t dim_sizes_{k}[]", (_index(names, s) for s in output_sizes))
    yield array(f"const uint64_t dim_needs_{k}[]", needs(interface, output_sizes))


def _row(k: int, operator: Operator, name: str) -> str:
    """The operator's entry in the table."""
    interface = operator.interface
    fields = {
        "name": quote(name),
        "n_inputs": len(interface.inputs),
        "n_outputs": len(interface.outputs),
        "n_sizes": len(interface.sizes),
        "n_input_dims": sum(port.type.rank for port in interface.inputs),
        "n_output_dims": sum(port.type.rank for port in interface.outputs),
        "derive": f"derive_{k}" if interface.derived else "NULL",
    }
    arrays = ("ports", "origins", "agree", "shape", "dim_sizes", "dim_needs")
    fields |= {name: f"{name}_{k}" for name in arrays}
    if operator.cpu is not None:
        fields |= cpu_fields(k, operator.cpu)
    if operator.cuda is not None:
        fields |= cuda_fields(k)
    if operator.standby:
        fields["standby"] = 1
    return "{" + ", ".join(f".{name} = {value}" for name, value in fields.items()) + "}"


def _tensors(interface: Interface) -> tuple[Port, ...]:
    return (*interface.inputs, *interface.outputs)


def element_type(dtype: DType) -> int:
    """The number of ``dtype`` in ONNX Runtime's C interface."""
    return _NUMBERED_APART.get(dtype, dtype.onnx)


def _index(names: Sequence[str], size: Size) -> str:
    return str(names.index(size)) if isinstance(size, str) and size in names else "-1"
