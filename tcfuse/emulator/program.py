"""Compiled kernels."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tcfuse.emulator.build import Build, library
from tcfuse.emulator.launches import (
    TIME_LIMIT_S,
    Argument,
    Dimensions,
    Launches,
    Loaded,
    Run,
)
from tcfuse.emulator.lines import Lines, shared_variables
from tcfuse.emulator.memory import ALIGNMENT
from tcfuse.emulator.native_interface import READ_ONLY, UNORDERED, UNWRITTEN, NativeLibrary
from tcfuse.targets.toolchain import Toolchain


class Program:
    """Kernels, compiled and loaded.  One thread at a time runs their launches."""

    def __init__(self, build: Build, data: bytes) -> None:
        self.source = build
        self.library = data
        native, variables = NativeLibrary(data), shared_variables(data) if build.traced else ()
        for variable in variables:
            native.add_shared(variable.offset, variable.bytes)
        names = tuple(variable.name for variable in variables)
        lines = Lines(data, build.files)
        self._loaded = Loaded(native, lines, build.traced, names, threading.Lock())

    @classmethod
    def build(
        cls,
        texts: str | Sequence[str],
        symbols: Sequence[str],
        *,
        trace: bool,
        contract: bool = True,
        toolchain: Toolchain | None = None,
    ) -> Program:
        """Compile CUDA C++.

        Args:
            texts: One text, or several whose names differ; the device library is compiled once.
            symbols: The ``extern "C" __global__`` functions to launch.
            trace: Check and count every access, at about a twentieth of the speed.
            contract: Whether a multiplication and an addition may be fused.
            toolchain: Compiler and cache; the usual ones when none is given.

        Raises:
            ToolchainError: There is no compiler, a text does not compile, or pyelftools is
                missing from a traced build.
        """
        build = Build.of(texts, symbols, traced=trace, contract=contract)
        return cls(build, library(build, toolchain))

    def run(
        self,
        symbol: str,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        args: Sequence[Argument],
        *,
        seed: int = 0,
        read_only: Sequence[int] = (),
        unwritten: Sequence[int] = (),
        unordered: Sequence[int] = (),
        limit_s: float = TIME_LIMIT_S,
    ) -> Run:
        """Launch one kernel.

        Args:
            symbol: The kernel.
            grid: Blocks.
            block: Threads of a block.
            shared_bytes: Dynamic shared memory of a block.
            args: Arrays are passed as pointers to copies, and get what those then hold; NumPy
                scalars are passed as they are, Python's integers as ``int64_t``.
            seed: Chooses the order of blocks, warps and lanes.
            read_only: Numbers of the arguments that may not be written.
            unwritten: Those whose contents mean nothing yet: reading them is wrong.
            unordered: Those that threads may write without an order, as a flag that many set.
            limit_s: Seconds after which the launch is stopped.
        """
        flags = dict.fromkeys(range(len(args)), 0)
        for numbers, flag in (
            (read_only, READ_ONLY),
            (unwritten, UNWRITTEN),
            (unordered, UNORDERED),
        ):
            for number in numbers:
                flags[number] |= flag
        names = [f"arg{number}" for number in range(len(args))]
        with self.launches(args, names, [flags[n] for n in range(len(args))]) as launches:
            return launches.launch(symbol, grid, block, shared_bytes, seed, limit_s)

    def launches(
        self,
        args: Sequence[Argument],
        names: Sequence[str],
        flags: Sequence[int],
        alignments: Sequence[int] | None = None,
    ) -> Launches:
        """Launches with the same arguments, which reports call by names.

        Args:
            args: As for ``run``.
            names: Of the arguments.
            flags: Of each, a sum of those in ``native_interface``.
            alignments: What the addresses of arrays are multiples of, but not of more; as
                large as may be when not given.
        """
        alignments = alignments or [ALIGNMENT] * len(args)
        return Launches(self._loaded, args, names, flags, alignments)
