"""Memory between pages that nobody may touch, so that a write past its end is seen at once.

A tensor that lies flush against such a page at its end is a few bytes away from the one before
it; these bytes hold a pattern, which is looked at afterwards.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

PAGE = mmap.PAGESIZE
GUARD = 64 * PAGE  # bytes on either side; a stride past them is some other tensor's matter
PATTERN = 0xC5
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """So many bytes, flush against a page that nobody may touch.

    Attributes:
        name: What messages call it.
        data: The bytes.
        slack: The bytes between them and the untouchable page on the other side.
        begin: Address of the whole mapping, untouchable pages included.
        end: Address behind it.
    """

    name: str
    data: np.ndarray
    slack: np.ndarray
    begin: int
    end: int

    @classmethod
    def of(cls, name: str, n_bytes: int, *, at_end: bool) -> Guarded:
        """Fresh memory; its end is guarded to the byte, or else its beginning.

        Raises:
            MemoryError: There is not so much.
        """
        inner = -(-max(n_bytes, 1) // PAGE) * PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        try:
            area = mmap.mmap(-1, inner + 2 * GUARD, flags=flags)
        except OSError as error:
            raise MemoryError(str(error)) from None
        whole = np.frombuffer(area, np.uint8)
        begin = whole.ctypes.data
        _protect(begin, GUARD, 0)
        _protect(begin + GUARD + inner, GUARD, 0)
        usable = whole[GUARD : GUARD + inner]
        rest = inner - n_bytes
        data, slack = (
            (usable[rest:], usable[:rest]) if at_end else (usable[:n_bytes], usable[n_bytes:])
        )
        slack[:] = PATTERN
        return cls(name, data, slack, begin, begin + whole.size)

    def make_readonly(self) -> None:
        """Whoever writes to it from now on is stopped."""
        _protect(self.begin + GUARD, self.end - self.begin - 2 * GUARD, mmap.PROT_READ)

    @property
    def intact(self) -> bool:
        """Whether nobody wrote next to the data."""
        return bool((self.slack == PATTERN).all())

    def where(self, address: int) -> str:
        """``4 bytes past its end``, if the address is close to the data; else empty."""
        if not self.begin <= address < self.end:
            return ""
        first = self.data.ctypes.data
        last = first + self.data.size
        if address == last:
            return f"just past the end of {self.name}"
        if address > last:
            return f"{address - last} bytes past the end of {self.name}"
        if address < first:
            return f"{first - address} bytes before {self.name}"
        return f"byte {address - first} of {self.name}"


def _protect(address: int, n_bytes: int, protection: int) -> None:
    status = _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(n_bytes), protection)
    if status != 0:
        raise MemoryError(os.strerror(ctypes.get_errno()))


def described(areas: Sequence[Guarded], address: int, *, is_write: bool) -> str:
    """What an access to a page that nobody may touch was about."""
    verb = "writes" if is_write else "reads"
    found: Iterator[str] = (text for area in areas if (text := area.where(address)))
    if (text := next(found, "")) == "":
        return f"{verb} at address {address:#x}, which is no tensor's"
    if text.startswith("byte"):
        return f"{verb} {text}, which is an input"
    return f"{verb} out of bounds: {text}"


# struct sigaction and siginfo_t of Linux's C libraries on machines of 64 bits.
class _Action(ctypes.Structure):
    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_SA_SIGINFO = 4
_ADDRESS = 16  # of the field si_addr
_X86_ERROR = 40 + 19 * 8  # of the page fault's error code in ucontext_t
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_installed: list[object] = []


def on_fault(signals: Sequence[int], told: Callable[[int, bool], object]) -> None:
    """Call ``told`` with the address and whether it was written when the process faults.

    It must end the process.  The handler is Python, which is sound where the fault is in a
    function called through ctypes: the thread holds no lock of the interpreter then.
    """
    is_x86 = os.uname().machine == "x86_64"

    def handler(_number: int, info: int, context: int) -> None:
        address = ctypes.c_uint64.from_address(info + _ADDRESS).value
        code = ctypes.c_uint64.from_address(context + _X86_ERROR).value if is_x86 else 2
        told(address, bool(code & 2))

    function = _HANDLER(handler)
    action = _Action(ctypes.cast(function, ctypes.c_void_p).value, flags=_SA_SIGINFO)
    _installed[:] = [function]  # must outlive its installation
    for number in signals:
        _LIBC.sigaction(number, ctypes.byref(action), None)
