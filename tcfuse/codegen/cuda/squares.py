"""Phases that run in squares, as CUDA C; ``codegen.cuda.staging`` says which they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcfuse.codegen.cuda.kernel import Kernel, PhaseText
from tcfuse.codegen.cuda.launch import Launch
from tcfuse.codegen.cuda.loops import TeamWriter
from tcfuse.codegen.cuda.nest import Nest, as_divisor, as_factor
from tcfuse.codegen.cuda.staging import Staged, Staging, find_staging
from tcfuse.codegen.cuda.variants import divided_up, index_type
from tcfuse.codegen.cuda.vectors import SCALAR
from tcfuse.codegen.kernel_ast import Loop
from tcfuse.codegen.scope import Lines
from tcfuse.codegen.tensors import Tensor
from tcfuse.poly.polynomial import Polynomial

BLOCK = 256  # threads, as tcf::stage_block
CELLS = {4: "uint32_t", 8: "uint64_t"}


def squares_phase(
    kernel: Kernel,
    nest: Nest,
    symbol: str,
    elements: Sequence[Polynomial],
    vector_bytes: int,
) -> PhaseText:
    """The ways to run a phase in squares, each under its conditions; none when it has no such.

    Args:
        kernel: Whose phase it is.
        nest: The phase.
        symbol: What the names of its functions start with.
        elements: Of the kernel's tensors.
        vector_bytes: That a thread reads or writes at once, at most.
    """
    staging = find_staging(nest, kernel.scop, kernel.tensors, vector_bytes)
    if staging is None:
        return PhaseText("", ())
    pieces = [_template(kernel, staging, nest, f"{symbol}_body")]
    index, small = index_type(tuple(elements))
    launches: list[Launch] = []
    for vector, size in ((staging.vector, staging.bytes), (SCALAR, 1)):
        conditions = dict.fromkeys((*small, *staging.conditions, *vector.conditions))
        when = " && ".join(f"({c})" for c in conditions) or "1"
        name, grid = f"{symbol}_{len(launches)}", str(_turns(staging))
        launches.append(Launch(name, grid, BLOCK, when=when))
        arguments = f"{index}, {vector.lanes}, {size}"
        pieces.append(kernel.entry(launches[-1], f"{symbol}_body<{arguments}>"))
        if not vector.conditions:
            break
    return PhaseText("\n".join(pieces), tuple(launches))


def _template(kernel: Kernel, staging: Staging, nest: Nest, name: str) -> str:
    """The function that runs squares, one after the other."""
    tile, cell = staging.tile, CELLS[staging.squares.cell_bytes]
    tensors = kernel.tensors
    staged = {s.tensor: _in_square(tensors[s.tensor], s, tile) for s in staging.squares.staged}
    writer = TeamWriter(
        kernel.scop,
        {**tensors, **staged},
        reciprocals=kernel.reciprocals,
        vector=staging.vector,
    )
    lines = Lines(depth=1)
    kernel.declare(lines)
    lines.add("constexpr int tcf_rank = 0; (void)tcf_rank;")
    for s in staging.squares.staged:
        cells = f"cells_{tensors[s.tensor].name}"
        lines.add(f"__shared__ {cell} {cells}[{tile * (tile + 1)}];")
    lines.add(f"const tcf_index turns = {_turns(staging)};")
    with lines.braces("for (tcf_index turn = blockIdx.x; turn < turns; turn += gridDim.x)"):
        _decode(staging, lines)
        for s in staging.squares.staged:
            _fill(staging, s, tensors[s.tensor], lines)
        lines.add("__syncthreads();")
        _read(staging, nest, writer, lines)
        lines.add("__syncthreads();")
    head = "template <class tcf_index, int TCF_L, int TCF_BYTES>"
    signature = f"TCF_INLINE void {name}({kernel.signature}) {{"
    return "\n".join([head, signature, *lines.text, "}\n"])


def _in_square(tensor: Tensor, staged: Staged, tile: int) -> Tensor:
    """A tensor where it is staged."""
    return replace(tensor, name=_square(tensor), strides=staged.strides(tile))


def _turns(staging: Staging) -> Polynomial:
    """Squares of all iterations."""
    total = Polynomial.constant(1)
    for loop in (staging.squares.along, staging.squares.across):
        extent = (loop.high - loop.low).at_least_zero()
        total = total * divided_up(extent, staging.tile)
    for loop in staging.squares.others:
        total = total * as_factor((loop.high - loop.low).at_least_zero())
    return total


def _decode(staging: Staging, lines: Lines) -> None:
    """Where the square is, from its number."""
    lines.add("tcf_index rest = turn;")
    for loop, start in ((staging.squares.along, "along"), (staging.squares.across, "across")):
        extent = (loop.high - loop.low).at_least_zero()
        count = as_divisor(divided_up(extent, staging.tile))
        at = Polynomial.factor(f"rest % {count} * {staging.tile}")
        lines.add(f"const tcf_index {start} = {loop.low + at};")
        lines.add(f"rest /= {count};")
    for loop in reversed(staging.squares.others):
        extent = as_factor((loop.high - loop.low).at_least_zero())
        value = loop.low + Polynomial.factor(f"rest % {as_divisor(extent)}")
        lines.add(f"const tcf_index {loop.iterator} = {value};")
        lines.add(f"rest /= {extent};")


def _start(staging: Staging, value: Polynomial) -> Polynomial:
    """A value at the square's first iterations."""
    value = value.put(staging.squares.along.iterator, Polynomial.factor("along"))
    return value.put(staging.squares.across.iterator, Polynomial.factor("across"))


def _fill(staging: Staging, staged: Staged, tensor: Tensor, lines: Lines) -> None:
    """One tensor's square, and the view of it that statements read."""
    squares = staging.squares
    step = staged.read.offset.stride(squares.across.iterator)
    assert step is not None, "a staged tensor has rows"
    cell = CELLS[squares.cell_bytes]
    lanes = f"(TCF_BYTES > {tensor.dtype.bytes} ? TCF_BYTES / {tensor.dtype.bytes} : 1)"
    arguments = [
        f"cells_{tensor.name}",
        f"{tensor.name} + ({_start(staging, staged.read.offset)})",
        f"tcf_index({step})",
        *_bounds(staging, staged),
    ]
    lines.add(f"tcf::stage<{cell}, {staging.tile}, {lanes}>({', '.join(arguments)});")
    first = _start(staging, staged.cell(staging.tile))
    lines.add(
        f"const tcf::staged<{tensor.raw}, {cell}> {_square(tensor)} = "
        f"{{cells_{tensor.name}, uint32_t({first})}};"
    )


def _bounds(staging: Staging, staged: Staged) -> Iterator[str]:
    """Where the rows and the columns end that there are, and where they begin if not at 0."""
    read, squares = staged.read, staging.squares
    rows, columns = f"{squares.across.high} - across", f"{squares.along.high} - along"
    if read.is_inside:
        yield from (f"tcf_index({rows})", f"tcf_index({columns})")
        return
    places = [_start(staging, s) for s in read.subscripts if s is not None]
    rest = [k for k in range(len(places)) if k not in (staged.row, staged.column)]
    inside = [f"0 <= {places[k]} && {places[k]} < {read.shape[k]}" for k in rest]
    last = f"tcf_min({rows}, {read.shape[staged.row] - places[staged.row]})"
    yield f"tcf_index({' && '.join(inside)} ? {last} : 0)" if inside else f"tcf_index({last})"
    yield f"tcf_index(tcf_min({columns}, {read.shape[staged.column] - places[staged.column]}))"
    yield from (f"tcf_index({-places[k]})" for k in (staged.row, staged.column))


def _read(staging: Staging, nest: Nest, writer: TeamWriter, lines: Lines) -> None:
    """The iterations of a square, lanes across the rows that were brought in."""
    across, along = staging.squares.across, staging.squares.along
    square = f"tcf::square<{CELLS[staging.squares.cell_bytes]}, {staging.tile}, TCF_L>"
    lines.add("#pragma unroll 4")
    with lines.braces(f"for (int step = 0; step < {square}::steps; ++step)"):
        lines.add(f"const {square} at(step);")
        lines.add(f"const tcf_index {along.iterator} = along + at.row;")
        with lines.braces(f"if (at.row < {staging.tile} && {along.iterator} < {along.high})"):
            lines.add("const tcf_index base = across + at.column;")
            loop = Loop(across.iterator, across.low, across.high, nest.body, lanes=True)
            writer.one_group(loop, "base", lines)


def _square(tensor: Tensor) -> str:
    return f"square_{tensor.name}"
