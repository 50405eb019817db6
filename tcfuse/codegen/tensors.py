"""Tensors as kernels see them: a pointer with strides, or a register."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcfuse.codegen import storage
from tcfuse.codegen.storage import C_TYPES, RAW_TYPES
from tcfuse.errors import UnsupportedError
from tcfuse.mapping.storage import Buffer, Memory
from tcfuse.poly.polynomial import Polynomial, from_size, row_major
from tcfuse.poly.scop import Scop
from tcfuse.tc.checked import CheckedDef
from tcfuse.types import DType, Size

MOST_LANES = 16
PANEL = 2 * MOST_LANES  # the most lanes that lie side by side, ``tcf::panel`` in the source
MOST_BYTES = 1 << 44
_APART = Polynomial.constant(MOST_LANES)
STACK_BYTES = 16384  # row buffers of a kernel that together take no more live on the stack


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor's elements are.

    Attributes:
        name: C identifier of the pointer or register.
        strides: Elements between neighbours in each dimension; zero where the storage has none.
        register: Whether it is a variable instead of memory.
        lanes: Each lane has its own register, or its own row (lane by lane next to each other).
        size: Number of elements.
        streamed: Whether stores pass the caches by where it is large (``codegen.streams``).
    """

    name: str
    dtype: DType
    shape: tuple[Size, ...]
    strides: tuple[Polynomial, ...]
    register: bool
    lanes: bool
    size: Polynomial
    streamed: bool = False

    @property
    def raw(self) -> str:
        """C type of an element in memory."""
        return RAW_TYPES[self.dtype]

    @property
    def held(self) -> str:
        """C type of an element in a register."""
        return C_TYPES[self.dtype]

    def decoded(self, text: str) -> str:
        """A raw element, or a vector of them, as a value."""
        return storage.decoded(self.dtype, text)

    def encoded(self, text: str) -> str:
        """A value as what is stored."""
        return storage.encoded(self.dtype, text)

    def rounded(self, text: str) -> str:
        """A value as it would come back after being stored."""
        return storage.rounded(self.dtype, text)


def lanes_in_memory(scop: Scop) -> tuple[Polynomial, Polynomial]:
    """How far apart rows of lanes lie on a CPU, and room for as many in any case."""
    if has_panels(scop):
        return Polynomial.factor("tcf::panel"), Polynomial.constant(PANEL)
    return _APART, _APART


def has_panels(scop: Scop) -> bool:
    """Whether a kernel copies what the lanes of a contraction read (``mapping.packing``)."""
    return any(s.is_copy for s in scop.statements)


def tensors_of(
    checked: CheckedDef,
    buffers: Mapping[str, Buffer],
    lanes_apart: Polynomial = _APART,
    lanes_room: Polynomial | None = None,
) -> dict[str, Tensor]:
    """Every tensor of a kernel by name.

    Args:
        checked: Whose tensors they are.
        buffers: The storage of its temporaries.
        lanes_apart: Elements between neighbours in a row of which each lane has its own.
        lanes_room: The most that these are; the same when not given.
    """
    found: dict[str, Tensor] = {}
    for name, kind in checked.tensors.items():
        buffer = buffers.get(name)
        kept = tuple(range(kind.rank)) if buffer is None else buffer.kept
        shape = tuple(kind.shape[d] for d in kept)
        lanes = buffer is not None and buffer.lanes
        register = buffer is not None and buffer.memory is Memory.REGISTER
        step = lanes_apart if lanes and not register else Polynomial.constant(1)
        compact = [s * step for s in row_major(shape)]
        strides = [Polynomial()] * kind.rank
        for d, stride in zip(kept, compact, strict=True):
            strides[d] = stride
        size = lanes_room if lanes_room is not None and lanes and not register else step
        for extent in shape:
            size = size * from_size(extent)
        found[name] = Tensor(
            f"T_{name}", kind.dtype, kind.shape, tuple(strides), register, lanes, size
        )
    return found


@dataclass(frozen=True, slots=True)
class Arena:
    """Declarations of the buffers a kernel function uses, and the scratch they take.

    Attributes:
        declarations: C text, one line each.
        shared_bytes: C expression.
        local_bytes: C expression.
    """

    declarations: tuple[str, ...]
    shared_bytes: str
    local_bytes: str


def arrange(
    checked: CheckedDef, buffers: Mapping[str, Buffer], tensors: Mapping[str, Tensor]
) -> Arena:
    """Pointers to parameters, returned tensors and buffers, and the registers."""
    lines: list[str] = []
    for position, name in enumerate(checked.inputs):
        t = tensors[name]
        lines.append(
            f"const {t.raw}* __restrict {t.name} = (const {t.raw}*)tensors[{position}];"
        )
    for position, name in enumerate(checked.outputs, len(checked.inputs)):
        t = tensors[name]
        lines.append(f"{t.raw}* __restrict {t.name} = ({t.raw}*)tensors[{position}];")
    shared, local, stack = Polynomial(), Polynomial(), 0
    for name, buffer in buffers.items():
        t = tensors[name]
        if t.register:
            if not t.lanes:
                lines.append(f"{t.held} {t.name} = {t.held}(0);")
            continue
        needed = rounded_bytes(t)
        if any(abs(c) > MOST_BYTES for _, c in t.size.terms):
            raise UnsupportedError(f"{name} takes more memory than there is")
        small = needed.number is not None and stack + needed.number <= STACK_BYTES
        if buffer.memory is Memory.SHARED:
            lines.append(f"{t.raw}* __restrict {t.name} = ({t.raw}*)(shared + {shared});")
            shared = shared + needed
        elif small:
            assert needed.number is not None
            lines.append(f"alignas(64) {t.raw} {t.name}[{needed.number // t.dtype.bytes}];")
            stack += needed.number
        else:
            lines.append(f"{t.raw}* __restrict {t.name} = ({t.raw}*)(local + {local});")
            local = local + needed
    return Arena(tuple(lines), str(shared), str(local))


def rounded_bytes(tensor: Tensor) -> Polynomial:
    """Bytes the tensor takes, rounded up so that the next one is aligned."""
    total = tensor.size * Polynomial.constant(tensor.dtype.bytes)
    if total.number is not None:
        return Polynomial.constant((total.number + 63) // 64 * 64)
    return Polynomial.constant(64) * Polynomial.factor(f"(({total} + 63) / 64)")
