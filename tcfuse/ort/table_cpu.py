"""How a region runs on the CPU, as C: its loops for each instruction set, and their work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcfuse.ort.c_text import array, declare, guarded
from tcfuse.targets.base import KernelSource
from tcfuse.targets.compilers import Level
from tcfuse.types import size_names

N_LEVELS = 3  # TCF_N_LEVELS


def cpu_parts(k: int, kernel: KernelSource, levels: Sequence[Level]) -> Iterator[str]:
    """Declarations and functions of region number ``k``."""
    assert kernel.phases, f"{kernel.name} has no loop"
    loops = [[f"{p.symbol}_{level.name}" for level in levels] for p in kernel.phases]
    yield from (f"extern TCF_HIDDEN TcfLoop {symbol};" for row in loops for symbol in row)
    yield array(f"TcfLoop *const loops_{k}[][TCF_N_LEVELS]", _loop_rows(loops, levels))
    yield _plan(k, kernel)


def cpu_fields(k: int, kernel: KernelSource) -> dict[str, str]:
    """The same region's entries in the table."""
    return {"n_phases": str(len(kernel.phases)), "plan": f"plan_{k}", "loops": f"loops_{k}"}


def _plan(k: int, kernel: KernelSource) -> str:
    """The function that computes the work of each loop, and the scratch."""
    works = (
        f"  tcf_work[{p}] = (TcfWork){{{guarded(phase.extent)}, {guarded(phase.cost)}}};"
        for p, phase in enumerate(kernel.phases)
    )
    expressions = [text for phase in kernel.phases for text in (phase.extent, phase.cost)]
    expressions += [kernel.shared_bytes, kernel.local_bytes]
    scratch = f"{{{guarded(kernel.shared_bytes)}, {guarded(kernel.local_bytes)}}}"
    return "\n".join(
        (
            f"static void plan_{k}(const int64_t *tcf_sizes, TcfWork *tcf_work,",
            "                   TcfScratch *tcf_scratch) {",
            *declare(kernel.interface.sizes, size_names(expressions)),
            *works,
            f"  *tcf_scratch = (TcfScratch){scratch};",
            "}",
        )
    )


def _loop_rows(loops: Sequence[Sequence[str]], levels: Sequence[Level]) -> Iterator[str]:
    """One row a phase, with a symbol or NULL for each level."""
    for symbols in loops:
        by_position = {level.position: s for level, s in zip(levels, symbols, strict=True)}
        yield "{" + ", ".join(by_position.get(k, "NULL") for k in range(N_LEVELS)) + "}"
