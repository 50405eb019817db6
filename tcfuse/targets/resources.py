"""What each kernel function needs of a GPU, and what of it deserves a warning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tcfuse.targets.base import Launch
from tcfuse.targets.cubin import Cubin
from tcfuse.targets.ptx import Ptx

_SPILLS = re.compile(
    r"Function properties for ([\w$]+)\n.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
)
_ALIGNMENT = re.compile(r"tcf_alignment % (\d+) == 0")


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel function needs on one architecture.

    Attributes:
        registers: Of a thread.
        spill_stores: Bytes that a thread stores because registers ran out.
        spill_loads: Bytes that it loads again.
        stack: Bytes of local memory of a thread, spills and arrays.
        shared: Bytes of static shared memory of a block.
        code_bytes: Size of the machine code.
        load_bytes: Bytes of the widest load from global memory; 0 when there is none.
        store_bytes: Bytes of the widest store to it.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int
    code_bytes: int
    load_bytes: int
    store_bytes: int


@dataclass(frozen=True, slots=True)
class LaunchWarning:
    """Something about a kernel function that costs time.

    Attributes:
        symbol: The function.
        arch: The architecture, ``sm_90``.
        sentence: What it is, lower case, no full stop.
    """

    symbol: str
    arch: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.symbol} for {self.arch} {self.sentence}"


def spills(log: str) -> dict[str, tuple[int, int]]:
    """Bytes of spill stores and loads of each function, from ``--ptxas-options=-v``'s log."""
    return {name: (int(stores), int(loads)) for name, stores, loads in _SPILLS.findall(log)}


def resources(cubin: Cubin, ptx: Ptx, log: str) -> dict[str, Resources]:
    """What each kernel function needs, by symbol; spills with those of functions it calls.

    Args:
        cubin: The machine code.
        ptx: The text that the cubin was made from.
        log: What the compiler printed.
    """
    spilled = spills(log)
    found: dict[str, Resources] = {}
    for symbol, kernel in cubin.kernels.items():
        parts = [spilled[name] for name in ptx.reached(symbol) if name in spilled]
        found[symbol] = Resources(
            kernel.registers,
            sum(stores for stores, _ in parts),
            sum(loads for _, loads in parts),
            kernel.stack,
            kernel.shared,
            kernel.code_bytes,
            *ptx.accesses(symbol).widest,
        )
    return found


def warnings(launch: Launch, arch: str, needs: Resources) -> Iterator[LaunchWarning]:
    """What of a launch's function costs time: registers that ran out, narrow accesses."""
    if needs.spill_stores or needs.spill_loads:
        stores, loads = needs.spill_stores, needs.spill_loads
        sentence = f"spills registers: {stores} bytes out, {loads} back"
        yield LaunchWarning(launch.symbol, arch, sentence)
    meant, widest = meant_bytes(launch), max(needs.load_bytes, needs.store_bytes)
    if widest < meant:
        sentence = f"was meant to access {meant} bytes at once, and accesses {widest} at most"
        yield LaunchWarning(launch.symbol, arch, sentence)


def meant_bytes(launch: Launch) -> int:
    """Bytes that a launch is meant to access at once: the alignment that it asks for."""
    return max(map(int, _ALIGNMENT.findall(launch.when)), default=1)
