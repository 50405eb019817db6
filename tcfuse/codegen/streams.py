"""Outputs that no cache holds, stored past the caches.

A store to a line that is in no cache reads the line first.  One that passes the caches by does
not: of the three or four accesses an elementwise kernel makes for an element, it saves one.
But it also drops the line, so it is only for what is larger than the last level, and for what
the kernel itself does not read again.

A line must be written whole, and by such stores only: one of them waits until the caches have
given up the line.  So what lies before the first line of a run, and behind the last one, is
stored as ever, and no group of lanes overlaps another.  These two lines come from memory and
nobody asks for them ahead, so a short run has none of them.

Rewrite, where sizes are known only at run time:
    for i in lanes: Y(i) = ...
    ->  if (Y is large) { for lines of Y: for i in lanes: ... } else { as before }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcfuse.codegen.tensors import Tensor
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop, accesses

LEAST_RUN = 256  # lanes in a row that is lines and nothing else
LEAST_UNALIGNED_RUN = 512  # and in one that begins or ends inside of lines
MOST_STREAMED_WORK = 60  # operations of a body that is written twice; more hide the memory
LEAST_ELEMENT = 4  # bytes: the first lanes of smaller ones are stored one after the other


def with_streams(tensors: Mapping[str, Tensor], scop: Scop, least: int) -> dict[str, Tensor]:
    """``tensors`` with those marked whose stores pass the caches by where they are large.

    Large is what has ``least`` bytes; nothing is where that is 0.

    None are in a kernel that also keeps rows in memory: what it stores there would wait behind
    what passes the caches by (a softmax over rows of 256 took a third longer).
    """
    statements = scop.statements
    kept = {access.tensor for s in statements for access in accesses(s)}
    kept |= {s.comprehension.tensor for s in statements if s.is_update or s.is_init}
    parameters = {*scop.checked.inputs, *scop.checked.outputs}
    rows = any(not t.register for name, t in tensors.items() if name not in parameters)
    if rows or not least:
        return dict(tensors)
    found = dict(tensors)
    for name in scop.checked.outputs:
        tensor = tensors[name]
        n_bytes = bytes_of(tensor).number
        small = n_bytes is not None and n_bytes < least
        if name not in kept and not small and tensor.dtype.bytes >= LEAST_ELEMENT:
            found[name] = replace(tensor, streamed=True)
    return found


def bytes_of(tensor: Tensor) -> Polynomial:
    """Bytes of all elements."""
    return tensor.size * Polynomial.constant(tensor.dtype.bytes)


@dataclass(frozen=True, slots=True)
class Streams:
    """What a lanes loop stores past the caches, and when.

    Attributes:
        raw: C type of the smallest element.
        sizes: C conditions under which no cache holds the tensors; none where that is known.
        runs: The same for runs of lanes that are worth it; ``{start}`` is where one starts.
        short: They are known not to be.
    """

    raw: str
    sizes: tuple[str, ...]
    runs: tuple[str, ...]
    short: bool

    @classmethod
    def of(cls, tensors: Sequence[Tensor], lanes: Polynomial, least: int) -> Streams:
        """Of a loop of that many lanes that writes these; large from ``least`` bytes on."""
        bytes_ = [bytes_of(tensor) for tensor in tensors]
        large = (f"{size} >= {least}" for size in bytes_ if size.number is None)
        sizes = tuple(dict.fromkeys(large))
        smallest = min(tensors, key=lambda tensor: tensor.dtype.bytes)
        number = lanes.number
        if number is not None and number >= LEAST_UNALIGNED_RUN:
            return cls(smallest.raw, sizes, (), False)
        lines = f"tcf::are_lines({{start}}, {lanes})"
        if number is not None:
            return cls(smallest.raw, sizes, (lines,), number < LEAST_RUN)
        long = f"{lanes} >= {LEAST_UNALIGNED_RUN}"
        return cls(
            smallest.raw, sizes, (f"({long} || ({lanes} >= {LEAST_RUN} && {lines}))",), False
        )
