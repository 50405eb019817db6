"""Where lines of C go while a loop nest is written, and names that are new in the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tcfuse.poly.polynomial import Polynomial


@dataclass(slots=True)
class Names:
    """Fresh identifiers, deterministic within one kernel."""

    count: int = 0

    def fresh(self, stem: str) -> str:
        """An identifier nobody has used."""
        self.count += 1
        return f"{stem}{self.count}"


@dataclass(slots=True)
class Lines:
    """Lines of C with their indentation."""

    text: list[str] = field(default_factory=list)
    depth: int = 1

    def add(self, line: str) -> None:
        """One more line."""
        self.text.append("  " * self.depth + line)

    def extend(self, other: Lines) -> None:
        """All lines of ``other``, which have their indentation already."""
        self.text.extend(other.text)

    def extend_declarations(self, value: str, names: list[str]) -> None:
        """Variables of one initial value."""
        for name in names:
            self.add(f"auto {name} = {value};")

    @contextmanager
    def braces(self, head: str = "") -> Iterator[None]:
        """A block."""
        self.add(f"{head} {{".strip())
        self.depth += 1
        yield
        self.depth -= 1
        self.add("}")


@dataclass(slots=True)
class Squares:
    """Blocks of lanes x iterations that are transposed in registers.

    Attributes:
        iterator: The loop inside the lanes loop along which memory is contiguous.
        index: C name of the iteration within a block.
        written: C names of the tensors that the loop writes, of which no block is read.
        kept: C names of those that it writes once and never reads, of which one is written.
        guarded: How many conditions are open around the loop.
        loads: C text of address and stride -> the array of columns and its element type.
        stores: The same for what is written when a block is full.
    """

    iterator: str
    index: str
    written: frozenset[str]
    kept: frozenset[str] = frozenset()
    guarded: int = 0
    loads: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    stores: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class LaneLoop:
    """The lanes loop that statements are being written into.

    Attributes:
        iterator: Its iterator, the first lane's index.
        width: C name of the lane count.
        partial: C text of the number of lanes in use, when not all are.
        before: Lines that run once before the loop; uniform values are computed there.
        hoisted: What is already in ``before``: by key, its C text.
        accumulators: For each key of an accumulated target: its partial sums' name.
        copy: Which copy of an unrolled body this is.
        nested: How many loops inside the lanes loop are open.
        guarded: How many conditions inside it are.
        squares: What is transposed in registers in the loop being written.
        inside: Iterator and end of each loop inside the lanes loop that is open.
        streamed: C name of each tensor that may be stored past the caches -> the offset.
        streams: Whether they are in what is written now.
    """

    iterator: str
    width: str
    before: Lines
    partial: str | None = None
    hoisted: dict[object, str] = field(default_factory=dict)
    accumulators: dict[object, list[str]] = field(default_factory=dict)
    copy: int = 0
    nested: int = 0
    guarded: int = 0
    squares: Squares | None = None
    inside: list[tuple[str, str]] = field(default_factory=list)
    streamed: dict[str, Polynomial] = field(default_factory=dict)
    streams: bool = False

    @property
    def hoists(self) -> bool:
        """Whether what is written now may run before the loop: it runs there in any case."""
        return self.nested == 0 and self.guarded == 0
