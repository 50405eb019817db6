"""What a cubin says of the kernels in it; a cubin is an ELF file.

Source: LLVM's ``BinaryFormat/ELF.h`` (``ELFOSABI_CUDA``) for the header; the attributes of
``.nv.info`` are not documented, and tests compare them with what the compiler's log says.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcfuse.errors import ToolchainError

if TYPE_CHECKING:  # only who compiles for GPUs has it
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

SIZED = 4  # an attribute with a size and as many bytes
REGISTERS, FRAME = 0x2F, 0x11
ABI_8 = 8  # of CUDA 13; CUDA 12 has 7
RESERVED_FROM, RESERVED_BYTES = 90, 1024  # shared memory of the driver's that sections count


@dataclass(frozen=True, slots=True)
class CubinKernel:
    """One kernel of a cubin.

    Attributes:
        registers: Of a thread.
        stack: Bytes of local memory of a thread, without those of the functions it calls.
        shared: Bytes of static shared memory of a block.
        code_bytes: Size of its machine code.
    """

    registers: int
    stack: int
    shared: int
    code_bytes: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """What a cubin holds.

    Attributes:
        arch: The architecture's number, 90 for ``sm_90``.
        kernels: By symbol.
    """

    arch: int
    kernels: dict[str, CubinKernel]


def read_cubin(data: bytes) -> Cubin:
    """Read a cubin.

    Raises:
        ToolchainError: It is none, or pyelftools is not installed.
    """
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        message = "reading code for GPUs needs pyelftools: pip install 'tcfuse[cuda]'"
        raise ToolchainError(message) from None
    try:
        elf = ELFFile(io.BytesIO(data))
        if elf["e_machine"] != "EM_CUDA":
            raise ToolchainError("not a cubin: an ELF file for another machine")
        return _read(elf)
    except (ELFError, struct.error) as error:
        raise ToolchainError(f"not a cubin: {error}") from error


def _read(elf: ELFFile) -> Cubin:
    arch = _arch(elf)
    sections = {section.name: section for section in elf.iter_sections()}
    values = _values(sections)
    kernels: dict[str, CubinKernel] = {}
    for name, code in sections.items():
        symbol = name.removeprefix(".text.")
        # Functions that kernels call have code, but no constants: those hold arguments.
        if symbol == name or f".nv.constant0.{symbol}" not in sections:
            continue
        shared = sections.get(f".nv.shared.{symbol}")
        n_bytes = 0 if shared is None else int(shared["sh_size"])
        if n_bytes and arch >= RESERVED_FROM:
            n_bytes -= RESERVED_BYTES
        registers = values.get((symbol, REGISTERS), 0)
        stack = values.get((symbol, FRAME), 0)
        kernels[symbol] = CubinKernel(registers, stack, n_bytes, int(code["sh_size"]))
    return Cubin(arch, kernels)


def _values(sections: Mapping[str, Section]) -> dict[tuple[str, int], int]:
    """Values of the attributes that are numbers of a symbol, by symbol and attribute."""
    from elftools.elf.sections import SymbolTableSection

    symbols, info = sections.get(".symtab"), sections.get(".nv.info")
    if not isinstance(symbols, SymbolTableSection) or info is None:
        return {}
    names = [symbol.name for symbol in symbols.iter_symbols()]
    data, at = info.data(), 0
    found: dict[tuple[str, int], int] = {}
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != SIZED:  # its value is the two bytes that are a size elsewhere
            continue
        if size == 8:
            symbol, value = struct.unpack_from("<II", data, at)
            found[names[symbol], attribute] = value
        at += size
    return found


def _arch(elf: ELFFile) -> int:
    flags = int(elf["e_flags"])
    shift = 8 if elf["e_ident"]["EI_ABIVERSION"] >= ABI_8 else 0
    return flags >> shift & 0xFF
