"""The C++ compiler at work on kernels while isl is at work on the next ones.

Objects go to the cache, where the build of the library finds them.  What does not compile is
tried again there, and told there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
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


@dataclass(slots=True, eq=False)
class Ahead:
    """Compilations that are under way."""

    contract: str
    toolchain: Toolchain
    pool: ThreadPoolExecutor
    jobs: list[Future[bool]] = field(default_factory=list)

    def compile(self, kernels: Kernels) -> None:
        """Begin with the kernel for the CPU, for every instruction set."""
        if kernels.cpu is None:
            return
        if not self.jobs:
            self._submit(*constant_units())
        source = kernels.cpu.source
        self._submit(*(kernel_unit(source, level, self.contract) for level in levels()))

    def _submit(self, *units: Unit) -> None:
        self.jobs += [self.pool.submit(self._made, unit) for unit in units]

    def _made(self, unit: Unit) -> bool:
        """Whether the unit was compiled, and was not in the cache."""
        with contextlib.suppress(ToolchainError):
            return self.toolchain.provide(unit)
        return False

    def wait(self) -> None:
        """Wait for all of them: nothing may run beside a measurement."""
        with profile.phase(profile.COMPILER):
            n_made = sum(job.result() for job in self.jobs)
        profile.tally(profile.COMPILER, made=n_made, cached=-n_made)  # the build finds them


@contextlib.contextmanager
def compiling_ahead(options: OptimizeOptions) -> Iterator[Ahead | None]:
    """Compilations that have ended when what is inside has; none without a compiler."""
    try:
        toolchain = replace(Toolchain.default(cache_dir(), current().cxx), workers=1)
    except ToolchainError:  # the build will tell, if there is something to build
        yield None
        return
    with ThreadPoolExecutor(max(1, len(sched_getaffinity(0)) - 1)) as pool:
        ahead = Ahead(contract_of(options), toolchain, pool)
        try:
            yield ahead
            ahead.wait()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
