"""The C interface of an emulator library, for ctypes: the layouts of ``native/state.hpp``."""

from __future__ import annotations

import ctypes
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

__all__ = ["NativeLibrary", "NativeReport", "NativeSite", "NativeWho"]

Structure = TypeVar("Structure", bound=ctypes.Structure)

READ_ONLY, UNWRITTEN, UNORDERED = 1, 2, 4  # enum BufferFlags


class NativeWho(ctypes.Structure):
    """``struct Who``: an address in the library or a line, a block and a thread."""

    _fields_ = (
        ("pc", ctypes.c_uint64),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("block", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3),
    )


class NativeReport(ctypes.Structure):
    """``struct Report``."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("buffer", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("bytes", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("who", NativeWho),
        ("other", NativeWho),
    )


class NativeSite(ctypes.Structure):
    """``struct Site``."""

    _fields_ = (
        ("pc", ctypes.c_uint64),
        ("shared", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("buffer", ctypes.c_int32),
        ("requests", ctypes.c_uint64),
        ("lanes", ctypes.c_uint64),
        ("transactions", ctypes.c_uint64),
        ("ideal", ctypes.c_uint64),
    )


class NativeLibrary:
    """A loaded library.  It holds the state of one launch: one thread at a time may use it."""

    def __init__(self, data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="tcfuse-emulator-") as folder:
            path = Path(folder, "kernels.so")  # needed until it is loaded
            path.write_bytes(data)
            self._library = ctypes.CDLL(str(path))
        weakref.finalize(self, _unload, self._library._handle)

    def reset(self) -> None:
        """Forget all buffers, reports and counters."""
        self._library.tcf_emulator_reset()

    def next_launch(self, seed: int) -> None:
        """Forget reports and counters; ``seed`` chooses the order of threads and blocks."""
        self._library.tcf_emulator_next()
        self._library.tcf_emulator_seed(ctypes.c_uint32(seed))

    def add_buffer(self, address: int, size: int, flags: int) -> None:
        """Let kernels use the memory at an address."""
        self._library.tcf_emulator_buffer(
            ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_uint32(flags)
        )

    def add_shared(self, offset: int, size: int) -> None:
        """Let kernels use a variable in static shared memory."""
        self._library.tcf_emulator_shared(ctypes.c_size_t(offset), ctypes.c_size_t(size))

    def launch(
        self,
        symbol: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        addresses: Sequence[int],
    ) -> bool:
        """Run a kernel, given the addresses of its arguments; whether it ran to its end."""
        numbers = map(ctypes.c_uint32, (*grid, *block, shared_bytes))
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        status: int = self._library[f"tcf_emulate_{symbol}"](*numbers, pointers)
        return status != 1

    def reports(self) -> list[NativeReport]:
        """What the last launch found."""
        first = ctypes.POINTER(NativeReport)()
        count = self._count("tcf_emulator_reports", first)
        return [_copy(first[i]) for i in range(count)]

    def sites(self) -> list[NativeSite]:
        """The counters of the last launch."""
        first = ctypes.POINTER(NativeSite)()
        count = self._count("tcf_emulator_sites", first)
        return [_copy(first[i]) for i in range(count)]

    def traffic(self, buffer: int) -> tuple[int, ...]:
        """Sectors of a buffer: read, written, read ever, written ever, requested twice."""
        out = (ctypes.c_uint64 * 6)()
        self._library.tcf_emulator_traffic(ctypes.c_size_t(buffer), out)
        return tuple(out)

    def schedule(self) -> tuple[int, ...]:
        """Changes between threads, barriers and blocks of the last launch."""
        out = (ctypes.c_uint64 * 3)()
        self._library.tcf_emulator_schedule(out)
        return tuple(out)

    def _count(self, function: str, first: object) -> int:
        call = self._library[function]
        call.restype = ctypes.c_size_t
        return int(call(ctypes.byref(first)))  # type: ignore[arg-type]


def _unload(handle: int) -> None:
    """Give back the memory of a library that nobody uses any more, which ctypes never does."""
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle))


def _copy(structure: Structure) -> Structure:
    """A structure that outlives the library's next launch."""
    return type(structure).from_buffer_copy(structure)
