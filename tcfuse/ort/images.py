"""Code for GPUs inside a library: bytes as an object file that a linker takes.

The object is written here, without a compiler: no compiler has a way to include ten megabytes
that is quick, the same for all of them, and free of a system assembler.

Source: System V Application Binary Interface, chapters 4 and 5 (Object Files).
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from tcfuse.errors import ToolchainError
from tcfuse.targets.nvrtc import Image

SYMBOL = "tcf_images"
ALIGNMENT = 64  # of each image, in bytes
MACHINES = {"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183}  # EM_...

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_NULL, _PROGBITS, _SYMTAB, _STRTAB = range(4)  # SHT_...
_ALLOC = 2  # SHF_ALLOC
_GLOBAL_OBJECT = 1 << 4 | 1  # STB_GLOBAL, STT_OBJECT
_HIDDEN = 2  # STV_HIDDEN


@dataclass(frozen=True, slots=True)
class ImageData:
    """All images of a library, one after the other.

    Attributes:
        offsets: Where each image begins, by its bytes.
        data: The bytes; every image is followed by a NUL, which ends PTX.
    """

    offsets: dict[bytes, int]
    data: bytes

    @classmethod
    def of(cls, images: Iterable[Image]) -> ImageData:
        """The images in their order, equal ones once."""
        offsets: dict[bytes, int] = {}
        data = bytearray()
        for image in images:
            if image.data not in offsets:
                data += bytes(-len(data) % ALIGNMENT)
                offsets[image.data] = len(data)
                data += image.data + b"\0"
        return cls(offsets, bytes(data))

    def object(self, machine: str | None = None) -> bytes:
        """The object file that defines ``SYMBOL``, hidden and read-only.

        Args:
            machine: As ``platform.machine()`` names it; default: this one.

        Raises:
            ToolchainError: The format of that machine's objects is not known.
        """
        name = (machine or platform.machine()).lower()
        if name not in MACHINES:
            raise ToolchainError(f"libraries for GPUs cannot be made for {name}")
        return _relocatable(self.data, MACHINES[name])


def _relocatable(data: bytes, machine: int) -> bytes:
    """An ELF file with ``data`` in ``.rodata``.

    The empty section ``.note.GNU-stack`` says that nothing needs an executable stack.
    """
    names = b"\0.rodata\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack\0"
    strings = b"\0" + SYMBOL.encode() + b"\0"
    symbols = bytes(_SYMBOL.size) + _SYMBOL.pack(1, _GLOBAL_OBJECT, _HIDDEN, 1, 0, len(data))
    sections = [  # name, type, flags, content, link, info, alignment, entry size
        (b".rodata", _PROGBITS, _ALLOC, data, 0, 0, ALIGNMENT, 0),
        (b".symtab", _SYMTAB, 0, symbols, 3, 1, 8, _SYMBOL.size),
        (b".strtab", _STRTAB, 0, strings, 0, 0, 1, 0),
        (b".shstrtab", _STRTAB, 0, names, 0, 0, 1, 0),
        (b".note.GNU-stack", _PROGBITS, 0, b"", 0, 0, 1, 0),
    ]
    body, headers = bytearray(bytes(_HEADER.size)), [bytes(_SECTION.size)]
    for name, kind, flags, content, link, info, alignment, entry in sections:
        body += bytes(-len(body) % ALIGNMENT)
        at = names.index(b"\0" + name + b"\0") + 1
        placed = (at, kind, flags, 0, len(body), len(content))
        headers.append(_SECTION.pack(*placed, link, info, alignment, entry))
        body += content
    body += bytes(-len(body) % ALIGNMENT)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little endian, version 1
    counts = (_HEADER.size, 0, 0, _SECTION.size, len(headers), 4)
    body[: _HEADER.size] = _HEADER.pack(identity, 1, machine, 1, 0, 0, len(body), 0, *counts)
    return bytes(body) + b"".join(headers)
