"""Kernels' interfaces as the C table that the operator shell runs on (``glue/tcf_region.h``).

Everything that depends on sizes becomes C: the expressions of an interface are C already, over
names that the generated functions declare.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tcfuse.targets.base import Interface, KernelSource, Port
from tcfuse.targets.compilers import Level
from tcfuse.targets.geometry import MOST_SCRATCH
from tcfuse.targets.places import Places, dimensions, origins
from tcfuse.types import Size, size_names

N_LEVELS = 3  # TCF_N_LEVELS
UNKNOWN_BIT = 63


@dataclass(frozen=True, slots=True)
class Naming:
    """What users of a library know its operators by.

    Attributes:
        domain: Of every operator.
        operators: Name of the operator of each kernel; a kernel that lacks has its own.
        ports: Call the inputs by their names in messages, not by their positions.
    """

    domain: str = "tcfuse"
    operators: Mapping[str, str] = field(default_factory=dict)
    ports: bool = False

    def operator(self, kernel: KernelSource) -> str:
        """The name of the operator of ``kernel``."""
        return self.operators.get(kernel.name, kernel.name)


def table(
    kernels: Sequence[KernelSource], levels: Sequence[Level], naming: Naming | None = None
) -> str:
    """The C text that describes ``kernels``, compiled for ``levels``."""
    naming = naming or Naming()
    regions = [
        _region(k, kernel, levels, ports=naming.ports) for k, kernel in enumerate(kernels)
    ]
    rows = "".join(
        f"  {_row(k, kernel, naming.operator(kernel))},\n" for k, kernel in enumerate(kernels)
    )
    return "\n".join(
        (
            '#include "tcf_region.h"\n',
            *regions,
            f"const TcfRegion tcf_regions[] = {{\n{rows}}};\n",
            f"const int tcf_n_regions = {len(kernels)};",
            f"const char tcf_domain[] = {_quote(naming.domain)};",
            f"TcfOp tcf_ops[TCF_N_LEVELS * {len(kernels)}];\n",
        )
    )


def _region(k: int, kernel: KernelSource, levels: Sequence[Level], *, ports: bool) -> str:
    """The functions and arrays of kernel number ``k``."""
    interface = kernel.interface
    assert kernel.phases, f"{kernel.name} has no loop"
    assert re.fullmatch(r"[A-Za-z_]\w*", kernel.name), f"{kernel.name!r} is no identifier"
    names = interface.sizes
    loops = [[f"{p.symbol}_{level.name}" for level in levels] for p in kernel.phases]
    kinds = (f"{{{p.type.dtype.onnx}, {p.type.rank}}}" for p in _ports(interface))
    read = origins(interface)
    output_sizes = [size for _, _, size in dimensions(interface.outputs)]
    parts = [
        f"/* {kernel.name} */",
        *(f"extern TCF_HIDDEN TcfLoop {symbol};" for row in loops for symbol in row),
        _array(f"TcfLoop *const loops_{k}[][TCF_N_LEVELS]", _loop_rows(loops, levels)),
        _array(f"const TcfPort ports_{k}[]", kinds),
        _array(f"const int32_t origins_{k}[]", (str(read.get(name, -1)) for name in names)),
        _array(f"const int32_t dim_sizes_{k}[]", (_index(names, s) for s in output_sizes)),
        _array(f"const uint64_t dim_needs_{k}[]", _needs(interface, output_sizes)),
        *_derive(k, interface),
        _agree(k, kernel, Places(interface, read, ports=ports)),
        _shape(k, interface, output_sizes),
        _plan(k, kernel),
    ]
    return "\n".join(parts) + "\n"


def _row(k: int, kernel: KernelSource, name: str) -> str:
    """The region's entry in the table."""
    interface = kernel.interface
    fields = {
        "name": _quote(name),
        "n_inputs": len(interface.inputs),
        "n_outputs": len(interface.outputs),
        "n_sizes": len(interface.sizes),
        "n_phases": len(kernel.phases),
        "n_input_dims": sum(port.type.rank for port in interface.inputs),
        "n_output_dims": sum(port.type.rank for port in interface.outputs),
        "derive": f"derive_{k}" if interface.derived else "NULL",
    }
    arrays = ("ports", "origins", "agree", "shape", "plan", "loops", "dim_sizes", "dim_needs")
    fields |= {name: f"{name}_{k}" for name in arrays}
    return "{" + ", ".join(f".{name} = {value}" for name, value in fields.items()) + "}"


def _derive(k: int, interface: Interface) -> Iterator[str]:
    """The function that computes derived sizes from the ones before them; none, no function."""
    if not interface.derived:
        return
    expressions = dict(interface.derived)
    used = size_names(expressions.values())
    yield f"static void derive_{k}(int64_t *tcf_sizes) {{"
    yield from _declare(interface.sizes, [name for name in used if name not in expressions])
    for name, expression in expressions.items():
        place = f"tcf_sizes[{interface.sizes.index(name)}]"
        local = f"const int64_t {name} = " if name in used else ""
        yield f"  {local}{place} = {guarded(expression)};"
    yield "}"


def _agree(k: int, kernel: KernelSource, places: Places) -> str:
    """The function that checks what the inputs' dimensions must be."""
    interface = kernel.interface
    checks = (*interface.checks, *_memory_checks(kernel))
    lines: list[str] = []
    expressions: list[Size] = [condition for condition, _ in checks]
    for position, (_, _, size) in enumerate(dimensions(interface.inputs)):
        if isinstance(size, str) and places.read.get(size) == position:
            continue
        where = _quote(places.dimensions[position])
        meaning = places.rule(size)
        rule = "NULL" if meaning is None else _quote(meaning)
        lines.append(f"  TCF_AGREE({position}, {guarded(size)}, {where}, {rule})")
        expressions.append(size)
    for condition, sentence in checks:
        lines.append(f"  TCF_REQUIRE({guarded(condition)}, {_quote(sentence)})")
    return "\n".join(
        (
            f"static int agree_{k}(const int64_t *tcf_dims, const int64_t *tcf_sizes,",
            "                   TcfComplaint *tcf_complaint) {",
            *_declare(interface.sizes, size_names(expressions)),
            *lines,
            "  return 1;",
            "}",
        )
    )


def _memory_checks(kernel: KernelSource) -> Iterator[tuple[str, str]]:
    """Conditions under which 64 bits hold the bytes of scratch, where sizes are multiplied."""
    names = set(kernel.interface.sizes)

    def inexact(match: re.Match[str]) -> str:
        return f"(double){match[0]}" if match[0] in names else match[0]

    for scratch in (kernel.shared_bytes, kernel.local_bytes):
        if re.search(r"[A-Za-z_]\w* \* [A-Za-z_(]", scratch):
            bytes_needed = re.sub(r"[A-Za-z_]\w*", inexact, scratch)
            sentence = "its temporaries take more memory than there is"
            yield f"{bytes_needed} < {MOST_SCRATCH}", sentence


def _shape(k: int, interface: Interface, sizes: Sequence[Size]) -> str:
    """The function that computes the dimensions of all outputs."""
    return "\n".join(
        (
            f"static void shape_{k}(const int64_t *tcf_sizes, int64_t *tcf_dims) {{",
            *_declare(interface.sizes, size_names(sizes)),
            *(f"  tcf_dims[{d}] = {guarded(size)};" for d, size in enumerate(sizes)),
            "}",
        )
    )


def _plan(k: int, kernel: KernelSource) -> str:
    """The function that computes the work of each loop, and the scratch."""
    works = (
        f"  tcf_work[{p}] = (TcfWork){{{guarded(phase.extent)}, {guarded(phase.cost)}}};"
        for p, phase in enumerate(kernel.phases)
    )
    expressions = [text for phase in kernel.phases for text in (phase.extent, phase.cost)]
    expressions += [kernel.shared_bytes, kernel.local_bytes]
    scratch = f"{{{guarded(kernel.shared_bytes)}, {guarded(kernel.local_bytes)}}}"
    return "\n".join(
        (
            f"static void plan_{k}(const int64_t *tcf_sizes, TcfWork *tcf_work,",
            "                   TcfScratch *tcf_scratch) {",
            *_declare(kernel.interface.sizes, size_names(expressions)),
            *works,
            f"  *tcf_scratch = (TcfScratch){scratch};",
            "}",
        )
    )


def _declare(names: Sequence[str], used: Iterable[str]) -> Iterator[str]:
    """Lines that bring the sizes that are used into scope under their names."""
    for name in used:
        if name in names:  # else it is a function
            yield f"  const int64_t {name} = tcf_sizes[{names.index(name)}];"


def _needs(interface: Interface, sizes: Iterable[Size]) -> Iterator[str]:
    """For each size, the set of sizes that must be known to compute it, as bits."""
    bits: dict[str, int] = {}
    for k, name in enumerate(interface.sizes):
        bits[name] = 1 << min(k, UNKNOWN_BIT)
    for name, expression in interface.derived:
        bits[name] = _union(bits, expression)
    return (f"0x{_union(bits, size):x}u" for size in sizes)


def _union(bits: dict[str, int], size: Size) -> int:
    found = 0
    for name in size_names([size]):
        found |= bits.get(name, 0)
    return found


def _loop_rows(loops: Sequence[Sequence[str]], levels: Sequence[Level]) -> Iterator[str]:
    """One row a phase, with a symbol or NULL for each level."""
    for symbols in loops:
        by_position = {level.position: s for level, s in zip(levels, symbols, strict=True)}
        yield "{" + ", ".join(by_position.get(k, "NULL") for k in range(N_LEVELS)) + "}"


def guarded(expression: Size) -> str:
    """A C expression that divides by one instead of zero, so that no empty dimension traps."""
    text = str(expression)
    pieces: list[str] = []
    done = 0
    for match in re.finditer(r"[/%]\s*", text):
        if match.start() < done:  # inside a divisor, which is guarded as a whole
            continue
        end = _operand_end(text, match.end())
        divisor = guarded(text[match.end() : end])
        known = divisor.isdigit() and int(divisor) != 0
        pieces += [text[done : match.end()], divisor if known else f"tcf_nonzero({divisor})"]
        done = end
    return "".join((*pieces, text[done:]))


def _operand_end(text: str, start: int) -> int:
    """Where the name, number, call or parenthesis at ``start`` ends."""
    name = re.compile(r"[-+]?\w*").match(text, start)
    end = start if name is None else name.end()
    depth = 0
    for place in range(end, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1 if text[place] == ")" else end
    return end


def _ports(interface: Interface) -> tuple[Port, ...]:
    return (*interface.inputs, *interface.outputs)


def _index(names: Sequence[str], size: Size) -> str:
    return str(names.index(size)) if isinstance(size, str) and size in names else "-1"


def _array(declaration: str, values: Iterable[str]) -> str:
    """A static array; C has no empty ones."""
    return f"static {declaration} = {{{', '.join(values) or '0'}}};"


def _quote(text: str) -> str:
    """A C string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
