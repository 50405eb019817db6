"""How many blocks of a kernel a multiprocessor runs at the same time, and what limits them.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and the
allocation rules of NVIDIA's ``cuda_occupancy.h``, with which tests compare.  Named barriers
are not counted: a kernel with at most one is never limited by them.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
REGISTERS = 65536  # of a multiprocessor, and at most of a block
MOST_REGISTERS = 255  # of a thread
REGISTER_UNIT = 256  # a warp gets a multiple
PARTITIONS = 4  # of a multiprocessor: each has a quarter of its registers
MOST_THREADS = 1024  # of a block


@dataclass(frozen=True, slots=True)
class Limits:
    """What a multiprocessor has.

    Attributes:
        warps: Resident at the same time.
        blocks: Resident at the same time.
        shared: Bytes of shared memory of all blocks.
        block_shared: Bytes of shared memory that one block may ask for.
        reserved: Bytes of shared memory that the driver takes for each block.
        shared_unit: A block gets a multiple of so many bytes.
    """

    warps: int
    blocks: int
    shared: int
    block_shared: int
    reserved: int = 1024
    shared_unit: int = 128


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How full a multiprocessor can be.

    Attributes:
        blocks: Resident at the same time; 0 when a block cannot start.
        share: Resident warps, of those it can hold.
        limiter: What there is too little of: ``warps``, ``blocks``, ``registers`` or
            ``shared memory``; of several the first.
    """

    blocks: int
    share: float
    limiter: str


LIMITS: dict[int, Limits] = {
    75: Limits(32, 16, 64 << 10, 64 << 10, reserved=0, shared_unit=256),
    80: Limits(64, 32, 164 << 10, 163 << 10),
    86: Limits(48, 16, 100 << 10, 99 << 10),
    87: Limits(48, 16, 164 << 10, 163 << 10),
    89: Limits(48, 24, 100 << 10, 99 << 10),
    90: Limits(64, 32, 228 << 10, 227 << 10),
    100: Limits(64, 32, 228 << 10, 227 << 10),
    103: Limits(64, 32, 228 << 10, 227 << 10),
    110: Limits(48, 24, 228 << 10, 227 << 10),
    120: Limits(48, 24, 100 << 10, 99 << 10),
    121: Limits(48, 24, 100 << 10, 99 << 10),
}


def occupancy(arch: int, registers: int, threads: int, shared: int) -> Occupancy | None:
    """What a kernel's blocks take of a multiprocessor.

    Args:
        arch: The architecture's number, 90 for ``sm_90``.
        registers: Of a thread.
        threads: Of a block.
        shared: Bytes of shared memory of a block, static and dynamic.

    Returns:
        ``None`` for an architecture that is not in the table.
    """
    limits = LIMITS.get(arch)
    if limits is None:
        return None
    warps = -(-threads // WARP)
    room = {
        "warps": limits.warps // warps if threads <= MOST_THREADS else 0,
        "registers": _by_registers(registers, warps),
        "blocks": limits.blocks,
        "shared memory": _by_shared(limits, shared),
    }
    limiter = min(room, key=room.__getitem__)
    blocks = room[limiter]
    return Occupancy(blocks, blocks * warps / limits.warps, limiter)


def _by_registers(registers: int, warps: int) -> int:
    """Blocks that there are registers for."""
    of_warp = -(-max(registers, 1) * WARP // REGISTER_UNIT) * REGISTER_UNIT
    checked = of_warp * -(-warps // PARTITIONS) * PARTITIONS  # as if spread over all partitions
    if registers > MOST_REGISTERS or checked > REGISTERS:
        return 0
    return REGISTERS // PARTITIONS // of_warp * PARTITIONS // warps


def _by_shared(limits: Limits, shared: int) -> int:
    """Blocks that there is shared memory for."""
    if shared > limits.block_shared:
        return 0
    of_block = -(-(shared + limits.reserved) // limits.shared_unit) * limits.shared_unit
    return limits.shared // of_block if of_block else limits.blocks
