"""PTX texts as NVRTC writes them: statements, and the global memory that they access.

Source: the PTX ISA reference, "Syntax" and "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# What may stand before an instruction with no semicolon between.
_BEFORE = re.compile(
    r"""[\s{}]+ | [\w$%]+:(?!:)
      | (?P<line>\.(?:version|target|address_size|file|loc)\b[^\n]*)
      | (?P<header>(?:\.(?:visible|extern|weak)\s+)?\.(?:entry|func)\b[^{;]*)""",
    re.VERBOSE,
)
_INSTRUCTION = re.compile(r"(?:@!?[\w$%]+\s+)?([\w.:]+)(.*)", re.DOTALL)
_NAME = re.compile(r"\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([\w$]+)")
_NOT_GLOBAL = re.compile(r"\.(shared|local|param|const)\b")
_VECTOR = re.compile(r"\.v([248])\b")
_TYPE = re.compile(r"\.(?:[busf]|bf)(8|16|32|64|128)(x2)?$")
_COPY = re.compile(r"\[.*?\]\s*,\s*\[.*?\]\s*,\s*(\d+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One instruction, directive or head of a function.

    Attributes:
        opcode: ``ld.global.v4.f32``, or the first word of a directive: ``.reg``.
        operands: The text after it.
        function: The function whose head came last; empty before the first.
    """

    opcode: str
    operands: str
    function: str = ""


@dataclass(frozen=True, slots=True)
class Accesses:
    """How many instructions of a kernel read and write global memory, by bytes at once."""

    loads: Counter[int] = field(default_factory=Counter)
    stores: Counter[int] = field(default_factory=Counter)

    @property
    def widest(self) -> tuple[int, int]:
        """Bytes of the widest load and of the widest store; 0 where there is none."""
        return max(self.loads, default=0), max(self.stores, default=0)


@dataclass(frozen=True, slots=True)
class Ptx:
    """A text, read.

    Attributes:
        text: What was read.
        statements: Everything it says, in its order.
        bodies: The statements of each function, by name.
    """

    text: str
    statements: tuple[Statement, ...]
    bodies: dict[str, list[Statement]]

    @classmethod
    def parse(cls, text: str) -> Ptx:
        """Read a text."""
        found = tuple(_statements(text))
        bodies: dict[str, list[Statement]] = {}
        for statement in found:
            bodies.setdefault(statement.function, []).append(statement)
        return cls(text, found, bodies)

    def reached(self, symbol: str) -> frozenset[str]:
        """A function and all that it calls, and they call."""
        seen, waiting = {symbol}, [symbol]
        while waiting:
            for statement in self.bodies.get(waiting.pop(), ()):
                if statement.opcode.startswith("call"):
                    called = set(re.findall(r"[\w$]+", statement.operands)) & self.bodies.keys()
                    waiting.extend(called - seen)
                    seen |= called
        return frozenset(seen)

    def accesses(self, symbol: str) -> Accesses:
        """Accesses of a function and of those that it calls, each instruction counted once."""
        found = Accesses()
        for name in self.reached(symbol):
            for statement in self.bodies.get(name, ()):
                _count(statement, found)
        return found


def widest_access(text: str, symbol: str) -> tuple[int, int]:
    """Bytes of the widest load from and the widest store to global memory; 0 for none.

    Args:
        text: PTX.
        symbol: The kernel.
    """
    return Ptx.parse(text).accesses(symbol).widest


def _statements(text: str) -> Iterator[Statement]:
    function = ""
    for part in _COMMENT.sub(" ", text).split(";"):
        rest = part
        while before := _BEFORE.match(rest):
            if said := before["line"] or before["header"]:
                named = _NAME.search(said)
                function = named[1] if named else function
                yield _statement(said, function)
            rest = rest[before.end() :]
        if rest:
            yield _statement(rest, function)


def _statement(text: str, function: str) -> Statement:
    found = _INSTRUCTION.match(text)
    if found is None:
        return Statement(text, "", function)
    return Statement(found[1], found[2].strip(), function)


def _count(statement: Statement, found: Accesses) -> None:
    """Count one instruction, if it accesses global memory."""
    opcode = statement.opcode
    if opcode.startswith("cp.async.c") and (copy := _COPY.search(statement.operands)):
        found.loads[int(copy[1])] += 1  # from global to shared memory
    elif opcode.startswith(("ld.", "st.")) and not _NOT_GLOBAL.search(opcode):
        element = _TYPE.search(opcode)
        vector = _VECTOR.search(opcode)
        if element:
            width = int(element[1]) // 8 * (2 if element[2] else 1)
            width *= int(vector[1]) if vector else 1
            (found.loads if opcode.startswith("ld") else found.stores)[width] += 1
