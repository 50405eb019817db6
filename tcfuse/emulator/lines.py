"""Which line of a kernel an address in its library belongs to, from DWARF line tables.

Most of a kernel's accesses are made by functions of the device library, which are compiled into
their callers; of the calls that lead to an address, the one in the kernel's own text counts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import PurePath
from typing import Any

import numpy as np

from tcfuse.errors import ToolchainError


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a source file; prints as ``kernel.cu:12``.

    Attributes:
        line: Counted from 1; 0 when it is not known.
        column: Counted from 1; 0 when it is not known.
        inside: Lines of the header that the call there leads to, the innermost last.
    """

    file: str
    line: int
    column: int
    inside: tuple[int, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in static shared memory.

    Attributes:
        offset: From the beginning of the library's shared memory, in bytes.
    """

    name: str
    offset: int
    bytes: int


@dataclass(slots=True)
class Lines:
    """The line tables of a library.

    Attributes:
        files: Names of the kernels' own texts, as ``#line`` gives them.
    """

    library: bytes
    files: tuple[str, ...]
    _tables: list[_Table] | None = None
    _found: dict[int, Place] = field(default_factory=dict)

    def place(self, address: int) -> Place:
        """Where the instruction at an address comes from.

        Raises:
            ToolchainError: pyelftools is not installed.
        """
        if address not in self._found:
            frames = [f for table in self._all() for f in table.frames(address)]
            self._found[address] = self._chosen(frames)
        return self._found[address]

    def _chosen(self, frames: list[Place]) -> Place:
        for depth, frame in enumerate(frames):
            if frame.file in self.files:
                return replace(frame, inside=tuple(f.line for f in reversed(frames[:depth])))
        unknown = Place(self.files[0] if len(self.files) == 1 else "?", 0, 0)
        return frames[0] if frames else unknown

    def _all(self) -> list[_Table]:
        if self._tables is None:
            dwarf = _elf(self.library).get_dwarf_info()
            self._tables = [_Table.read(dwarf, unit) for unit in dwarf.iter_CUs()]
        return self._tables


@dataclass(slots=True)
class _Table:
    """One compilation unit: rows of its line table, and the calls that were inlined."""

    addresses: list[int]
    places: list[Place | None]  # None: nothing begins there, a sequence ends
    calls: list[tuple[int, int, Place]]  # from, to, where the call is; callers before callees

    @classmethod
    def read(cls, dwarf: Any, unit: Any) -> _Table:
        program = dwarf.line_program_for_CU(unit)
        names = [_name(entry.name) for entry in program["file_entry"]]
        rows: list[tuple[int, Place | None]] = []
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            ends = state.end_sequence
            place = None if ends else Place(names[state.file - 1], state.line, state.column)
            rows.append((state.address, place))
        rows.sort(key=lambda row: (row[0], row[1] is not None))
        return cls([a for a, _ in rows], [p for _, p in rows], list(_calls(dwarf, unit, names)))

    def frames(self, address: int) -> list[Place]:
        """Where an address is, then the calls that lead there, innermost first."""
        index = bisect_right(self.addresses, address) - 1
        here = self.places[index] if index >= 0 else None
        if here is None:
            return []
        return [here, *reversed([p for low, high, p in self.calls if low <= address < high])]


def _calls(dwarf: Any, unit: Any, names: list[str]) -> Iterator[tuple[int, int, Place]]:
    """Every inlined call of a unit, with each range of addresses it takes."""
    base = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    for die in unit.iter_DIEs():
        if die.tag != "DW_TAG_inlined_subroutine":
            continue
        given = die.attributes
        if "DW_AT_call_file" not in given:
            continue
        column = given.get("DW_AT_call_column")
        file = names[given["DW_AT_call_file"].value - 1]
        place = Place(file, given["DW_AT_call_line"].value, column.value if column else 0)
        for low, high in _ranges(dwarf, given, base.value if base else 0):
            yield low, high, place


def _ranges(dwarf: Any, given: Any, base: int) -> Iterator[tuple[int, int]]:
    """The addresses of an entry, as pairs of first and past the last."""
    if "DW_AT_ranges" in given:
        for entry in dwarf.range_lists().get_range_list_at_offset(given["DW_AT_ranges"].value):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                yield base + entry.begin_offset, base + entry.end_offset
    elif "DW_AT_low_pc" in given:
        low, high = given["DW_AT_low_pc"].value, given["DW_AT_high_pc"]
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value


def shared_variables(library: bytes) -> tuple[Variable, ...]:
    """The variables in a library's static shared memory, in the order they lie there.

    They are its thread-local ones, and symbols of that kind give offsets.
    """
    table = _elf(library).get_section_by_name(".symtab")
    if table is None:
        return ()
    raw = np.frombuffer(table.data(), _SYMBOL)
    names: bytes = table.stringtable.data()
    found = []
    for symbol in raw[(raw["info"] & 15 == _TLS) & (raw["section"] != 0)]:
        start = int(symbol["name"])
        name = names[start : names.index(b"\0", start)].decode()
        found.append(Variable(_plain(name), int(symbol["value"]), int(symbol["size"])))
    own = (v for v in found if "tcf_emulator" not in v.name)
    return tuple(sorted(set(own), key=lambda v: v.offset))


# Elf64_Sym of the ELF specification; 6 is STT_TLS.
_SYMBOL = np.dtype(
    [
        ("name", "<u4"),
        ("info", "u1"),
        ("other", "u1"),
        ("section", "<u2"),
        ("value", "<u8"),
        ("size", "<u8"),
    ]
)
_TLS = 6


def _plain(name: str) -> str:
    """The last part of a mangled name: ``_ZZ4bodyIiLi32EEvPKfPfT_E4tile`` gives ``tile``."""
    best, position = name, len(name)
    for start in range(len(name)):
        digits = 0
        while start + digits < len(name) and name[start + digits].isdigit():
            digits += 1
        if not digits or (start and name[start - 1].isdigit()):
            continue
        length = int(name[start : start + digits])
        end = start + digits + length
        if length > 0 and end <= len(name) and name[end:] in ("", "_0") and start < position:
            best, position = name[start + digits : end], start
    return best


def _name(name: bytes | str) -> str:
    text = name.decode() if isinstance(name, bytes) else name
    return PurePath(text).name


def _elf(library: bytes) -> Any:
    """The library, read by pyelftools.

    Raises:
        ToolchainError: It is not installed.
    """
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        message = "checking kernels in the emulator needs pyelftools: pip install tcfuse[cuda]"
        raise ToolchainError(message) from None
    return ELFFile(BytesIO(library))
