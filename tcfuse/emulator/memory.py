"""Memory of the emulated device: copies of arrays, apart from each other as on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcfuse.types import Array

ALIGNMENT = 256  # bytes; what cuMemAlloc promises
APART = 4096  # bytes between buffers that belong to none


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Copies of host arrays, one after the other in one piece of memory.

    Attributes:
        host: The arrays as they were given.
        addresses: Where the copy of each is.
    """

    host: tuple[Array, ...]
    addresses: tuple[int, ...]
    _memory: Array
    _offsets: tuple[int, ...]

    @classmethod
    def of(cls, arrays: Sequence[Array], alignments: Sequence[int]) -> DeviceMemory:
        """Memory that holds the contents of some arrays.

        Args:
            arrays: What it holds at first.
            alignments: The largest power of two that divides the address of each, up to
                ``ALIGNMENT``.
        """
        offsets, end = [], APART
        for array, alignment in zip(arrays, alignments, strict=True):
            offsets.append(end + alignment % ALIGNMENT)
            end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT + APART
        memory = np.zeros(end + APART + ALIGNMENT, np.uint8)
        first = -memory.ctypes.data % ALIGNMENT
        offsets = [first + offset for offset in offsets]
        addresses = tuple(memory.ctypes.data + offset for offset in offsets)
        made = cls(tuple(arrays), addresses, memory, tuple(offsets))
        for array, offset in zip(arrays, offsets, strict=True):
            raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            memory[offset : offset + array.nbytes] = raw
        return made

    def copy_back(self) -> None:
        """Give every array what its copy holds; arrays that cannot be written stay."""
        for array, offset in zip(self.host, self._offsets, strict=True):
            if array.flags.writeable:
                raw = self._memory[offset : offset + array.nbytes]
                array[...] = raw.view(array.dtype).reshape(array.shape)
