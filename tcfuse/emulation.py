"""Kernels for GPUs tried in the emulator; what is wrong there is given back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

import onnx_ir as ir

from tcfuse.attempt import Attempt
from tcfuse.debug import cache_dir, current
from tcfuse.graph.rewrite import rewrite
from tcfuse.kernels import CompiledKernel
from tcfuse.options import OptimizeOptions
from tcfuse.ort.inference import runtime
from tcfuse.ort.subgraph import one_of_each
from tcfuse.ort.verify import NOT_RUN, Subject, Verification, reject_reason
from tcfuse.profile import timed
from tcfuse.store import Store, key_of, tool_digest
from tcfuse.targets.base import CudaSource
from tcfuse.targets.toolchain import Toolchain

KIND = "emulations"


@timed("emulation")
def emulated(
    attempts: Sequence[Attempt],
    model: ir.Model,
    options: OptimizeOptions,
    store: Store,
    progress: Callable[[str], object],
) -> list[Attempt]:
    """The attempts, without kernels for GPUs that are wrong; as they are unless asked for.

    A kernel whose only sizes are too large for the emulator stays.
    """
    subjects = {a.name: a for a in attempts if a.on_gpus}
    if not options.emulate or not subjects:
        return list(attempts)
    fused = rewrite(model, [attempt.replacement() for attempt in subjects.values()])
    nodes = one_of_each(fused)
    wrong: dict[str, str] = {}
    for count, (name, attempt) in enumerate(subjects.items(), 1):
        progress(f"emulating kernel {count} of {len(subjects)}")
        found = _verified(attempt, fused, nodes[name], store)
        if found.problem and not found.problem.startswith(NOT_RUN):
            wrong[name] = f"in the emulator, {reject_reason(found)}"
    return [a.without_cuda(wrong[a.name]) if a.name in wrong else a for a in attempts]


def _verified(attempt: Attempt, fused: ir.Model, node: ir.Node, store: Store) -> Verification:
    """What the emulator shows of one kernel; from the store where that was done before."""
    assert attempt.compiled is not None
    kernels = attempt.compiled.kernels
    assert kernels.cuda is not None
    key = key_of(kernels.cuda.key, runtime().__version__, tool_digest())
    record = store.get(KIND, key)
    if record is None:
        subject = Subject(fused, node, None, kernels.definition(), kernels.interface)
        record = asdict(_run(subject, kernels.cuda))
        store.put(KIND, key, record)
    return Verification(**record)


def _run(subject: Subject, kernel: CompiledKernel[CudaSource]) -> Verification:
    from tcfuse.ort.emulated import verify_emulated  # most runs do without the emulator

    return verify_emulated(
        subject, kernel.source, Toolchain.default(cache_dir(), current().cxx)
    )
