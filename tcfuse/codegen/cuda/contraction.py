"""Contractions to CUDA C: calls of the library's tiles, with operands and results as lambdas.

A lambda is given numbers of the rows, columns and steps of the sum, finds the iterators that
they stand for, and evaluates a factor there, or runs what follows the sum.  It does so for as
many neighbours as a vector holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tcfuse.codegen.cuda.axes import Axis, body_of, by_strides
from tcfuse.codegen.cuda.contracted import Contraction, find_contraction
from tcfuse.codegen.cuda.kernel import Kernel, PhaseText
from tcfuse.codegen.cuda.launch import Launch
from tcfuse.codegen.cuda.nest import Nest
from tcfuse.codegen.cuda.operands import Lambdas, Way, way_through
from tcfuse.codegen.cuda.tiles import (
    TENSOR_TILES,
    THREAD_TILES,
    Extents,
    Tile,
    choose_tiles,
    worth,
)
from tcfuse.codegen.cuda.variants import index_type
from tcfuse.codegen.scope import Lines
from tcfuse.mapping.storage import Memory
from tcfuse.poly.bounds import stays_inside
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import accesses
from tcfuse.types import DType

NONE = PhaseText("", ())
MOST_BYTES = 16  # of neighbours in shared memory, or of sums


def contraction_phase(
    kernel: Kernel,
    nest: Nest,
    symbol: str,
    elements: Sequence[Polynomial],
    vector_bytes: int,
) -> PhaseText:
    """The tiled ways to run a phase, each under its conditions; none when it has no such way.

    Args:
        kernel: Whose phase it is.
        nest: The phase.
        symbol: What the names of its functions start with.
        elements: Of the kernel's tensors.
        vector_bytes: Of the widest access of memory.
    """
    found = find_contraction(nest, kernel.scop, reassociate=kernel.reciprocals)
    if found is None or found.dtype not in THREAD_TILES or not _is_plain(kernel, found):
        return NONE
    tiled = _Tiled.of(kernel, found, vector_bytes)
    conditions = worth(tiled.extents)
    index, small = index_type(tuple(elements))
    if conditions is None or index != "int":
        return NONE
    launches: list[Launch] = []
    pieces = [tiled.template(f"{symbol}_body")]
    for tile, lanes, needed in tiled.variants():
        when = " && ".join(f"({c})" for c in dict.fromkeys((*conditions, *small, *needed)))
        name, grid = f"{symbol}_{len(launches)}", str(tiled.extents.grid(tile))
        shared = str(tile.shared_bytes(tiled.along_k))
        launches.append(Launch(name, grid, tile.threads, shared, when or "1"))
        arguments = ", ".join((index, tile.text, shared, *map(str, lanes)))
        pieces.append(kernel.entry(launches[-1], f"{symbol}_body<{arguments}>", tile.blocks))
        if not when:
            break
    return PhaseText("\n".join(pieces), tuple(launches))


@dataclass(frozen=True, slots=True, eq=False)
class _Tiled:
    """A contraction whose loops are counted by four numbers.

    Attributes:
        b, m, n, k: The axes: batch, rows, columns, steps of the sum.
        left, right, result: How operands are read, and results written.
        tiles: Those that it may run in, the largest first.
    """

    kernel: Kernel
    found: Contraction
    b: Axis
    m: Axis
    n: Axis
    k: Axis
    left: Way
    right: Way
    result: Way
    tiles: Sequence[Tile]

    @classmethod
    def of(cls, kernel: Kernel, found: Contraction, vector_bytes: int) -> _Tiled:
        """The contraction with results along its columns, if they lie side by side at all."""
        first = cls._as_is(kernel, found, vector_bytes)
        if first.n.is_unit(first.result.body) or not first.m.is_unit(first.result.body):
            return first
        return cls._as_is(kernel, found.turned(), vector_bytes)

    @classmethod
    def _as_is(cls, kernel: Kernel, found: Contraction, vector_bytes: int) -> _Tiled:
        scop, tensors = kernel.scop, kernel.tensors
        bodies = [
            body_of([(factor.statement, factor.position)], scop, tensors, writes=False)
            for factor in (found.left, found.right)
        ]
        depth = by_strides(found.depth, bodies) if kernel.reciprocals else found.depth
        m, n = Axis("tcf_m", found.left.outer), Axis("tcf_n", found.right.outer)
        b, k = Axis("tcf_b", found.batch), Axis("tcf_k", depth)
        iterators = {c.iterator for axis in (b, m, n, k) for c in axis.loops}
        tiles = _tiles(found, kernel.numerics)
        most = MOST_BYTES // tiles[0].element.bytes
        left, right = (
            way_through(body, (outer, k), most, vector_bytes, iterators)
            for body, outer in zip(bodies, (m, n), strict=True)
        )
        after = [(scop.statement(i.statement), i.position) for i in found.around]
        body = body_of(after, scop, tensors, writes=True)
        most = MOST_BYTES // found.dtype.bytes
        result = way_through(body, (n,), most, vector_bytes, iterators)
        return cls(kernel, found, b, m, n, k, left, right, result, tiles)

    @property
    def extents(self) -> Extents:
        """How often the axes count."""
        return Extents(self.b.extent, self.m.extent, self.n.extent, self.k.extent)

    @property
    def along_k(self) -> tuple[bool, bool]:
        """Whether neighbours of the operands lie along the steps of the sum."""
        return self.left.along is self.k, self.right.along is self.k

    def variants(self) -> Iterator[tuple[Tile, tuple[int, int, int], tuple[str, ...]]]:
        """Tiles with the neighbours of the three lambdas, and their conditions."""
        ways = (self.left, self.right, self.result)
        vectors = all(way.vector.lanes > 1 for way in ways[:2])
        needed = tuple(dict.fromkeys(c for way in ways for c in way.vector.conditions))
        lanes = (ways[0].vector.lanes, ways[1].vector.lanes, ways[2].vector.lanes)
        for tile, conditions in choose_tiles(self.tiles, self.extents, vectors=vectors):
            yield tile, lanes, (*needed, *conditions)
        if needed:
            for tile, conditions in choose_tiles(self.tiles, self.extents, vectors=False):
                yield tile, (1, 1, 1), conditions

    def template(self, name: str) -> str:
        """The function that every variant is an instance of."""
        lines = Lines(depth=1)
        self.kernel.declare(lines)
        found, element = self.found, self.tiles[0].element
        scop, tensors = self.kernel.scop, self.kernel.tensors
        lambdas = Lambdas(scop, tensors, reciprocals=self.kernel.reciprocals)
        axes = (self.b, self.m, self.k)
        lambdas.operand("a", found.left, self.left, axes, element, lines)
        axes = (self.b, self.n, self.k)
        lambdas.operand("b", found.right, self.right, axes, element, lines)
        lambdas.result(found, self.result, (self.b, self.m, self.n), lines)
        sides = [str(along).lower() for along in self.along_k]
        extents = ", ".join(f"tcf_index({extent})" for extent in self.extents.all)
        lines.add(f"const tcf::Extents<tcf_index> extents = {{{extents}}};")
        lines.add("tcf::contract<TCF_TILE, TCF_SHARED>(")
        lines.add(f"    extents, tcf::operand<TCF_A, {sides[0]}>(a),")
        lines.add(
            f"    tcf::operand<TCF_B, {sides[1]}>(b), tcf::result<TCF_C>(c), tcf_shared);"
        )
        head = (
            "template <class tcf_index, class TCF_TILE, int TCF_SHARED,\n"
            "          int TCF_A, int TCF_B, int TCF_C>\n"
            f"TCF_INLINE void {name}({self.kernel.signature}) {{"
        )
        return "\n".join([head, *lines.text, "}\n"])


def _tiles(found: Contraction, numerics: str) -> Sequence[Tile]:
    """The tiles that compute products of such factors as exactly as is asked for."""
    kinds = {found.left.kind, found.right.kind}
    half = kinds & {DType.FLOAT16, DType.BFLOAT16}
    if found.dtype is not DType.FLOAT32 or numerics == "strict":
        return THREAD_TILES[found.dtype]
    if len(kinds) == len(half) == 1:
        (kind,) = half
        assert isinstance(kind, DType)
        return TENSOR_TILES[kind]
    return TENSOR_TILES[DType.FLOAT32] if numerics == "fast" else THREAD_TILES[found.dtype]


def _is_plain(kernel: Kernel, found: Contraction) -> bool:
    """Whether operands are in global memory, and results there or in registers."""
    scop, tensors = kernel.scop, kernel.tensors
    used = set()
    for factor in (found.left, found.right):
        statement = factor.statement
        for access in accesses(statement):
            places = range(len(access.subscripts))
            if any(stays_inside(scop, statement, access, k) is None for k in places):
                return False  # an index that memory holds is checked where a function can end
            used.add(access.tensor)
    own = {found.target}
    for instance in found.around:
        statement = scop.statement(instance.statement)
        written = statement.comprehension.tensor
        used |= {a.tensor for a in accesses(statement)} - own
        used |= {written} - own if statement.is_update else set()
        own.add(written)
    rows = {b.tensor for b in kernel.buffers.values() if b.memory is Memory.ROW}
    held = tensors[found.target].register and not any(tensors[name].register for name in used)
    return held and not rows & (used | own)
