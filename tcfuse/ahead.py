"""The C++ compiler at work on kernels while isl is at work on the next ones.

Objects go to the cache, where the build of the library finds them.  What does not compile is
tried again there, and told there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from os import sched_getaffinity

from tcfuse import profile
from tcfuse.debug import cache_dir, current
from tcfuse.errors import ToolchainError
from tcfuse.kernels import Kernels
from tcfuse.options import OptimizeOptions
from tcfuse.ort.library import constant_units, kernel_unit
from tcfuse.targets.compilers import levels
from tcfuse.targets.toolchain import Toolchain, Unit


def contract_of(options: OptimizeOptions) -> str:
    """How kernels are compiled: ``strict`` contracts nothing."""
    return "off" if options.numerics == "strict" else "fast"


class Ahead:
    """Compilations that are under way; none, and no compiler looked for, until there is one."""

    def __init__(self, contract: str) -> None:
        self._contract = contract
        self._jobs: list[Future[bool]] = []
        self._pool: ThreadPoolExecutor | None = None

    def compile(self, kernels: Kernels) -> None:
        """Begin with the kernel for the CPU, for every instruction set."""
        if kernels.cpu is None:
            return
        units = [kernel_unit(kernels.cpu.source, level, self._contract) for level in levels()]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(sched_getaffinity(0)))
            units = [*constant_units(), *units]
        self._jobs += [self._pool.submit(_made, unit) for unit in units]

    def wait(self) -> None:
        """Wait for what was begun so far."""
        wait(self._jobs)

    def finish(self) -> None:
        """Wait for all of them: nothing may run beside a measurement."""
        if self._pool is not None:
            with self._pool, profile.phase(profile.COMPILER):
                n_made = sum(job.result() for job in self._jobs)
            profile.tally(profile.COMPILER, made=n_made, cached=-n_made)  # for the build

    def cancel(self) -> None:
        """Begin no more."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def _made(unit: Unit) -> bool:
    """Whether the unit was compiled, and was not in the cache."""
    with contextlib.suppress(ToolchainError):
        return Toolchain.default(cache_dir(), current().cxx).provide(unit)
    return False


@contextlib.contextmanager
def compiling_ahead(options: OptimizeOptions) -> Iterator[Ahead]:
    """Compilations that have ended when what is inside has."""
    ahead = Ahead(contract_of(options))
    try:
        yield ahead
        ahead.finish()
    except BaseException:
        ahead.cancel()
        raise
