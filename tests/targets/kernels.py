"""Kernels compiled, many at a time, and called on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from tcfuse.codegen.prelude import kernel_prelude
from tcfuse.mapping_options import MappingOptions
from tcfuse.ort.c_text import guarded
from tcfuse.targets.base import Interface, KernelSource, Port
from tcfuse.targets.compilers import Level
from tcfuse.targets.cpu import Kernel, compile_kernel
from tcfuse.targets.toolchain import Toolchain, Unit
from tcfuse.tc.binding import bind_sizes, size_value
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

Arrays = Mapping[str, np.ndarray]
MARGIN = 256  # bytes around every array that must stay as they are
FILL = 0xFF  # a NaN in every float type, -1 in every signed integer
_FREE_DIVISION = "static inline int64_t tcf_nonzero(int64_t n) { return n ? n : 1; }"
_TYPES = "char* const* tensors, const int64_t* sizes, char* shared, char* local"


def checked_of(text: str) -> CheckedDef:
    """What a definition's text means."""
    return check(parse(text))


def kernel_of(
    definition: str | CheckedDef, options: MappingOptions | None = None, hint: str = "k"
) -> Kernel:
    """The kernel of a definition whose parameters are its ports."""
    checked = checked_of(definition) if isinstance(definition, str) else definition
    return compile_kernel(checked, interface_of(checked), hint, options or MappingOptions())


def interface_of(checked: CheckedDef) -> Interface:
    """The signature of a definition whose parameters are its ports."""
    inputs, outputs = (
        tuple(Port(name, checked.tensors[name]) for name in names)
        for names in (checked.inputs, checked.outputs)
    )
    return Interface(inputs, outputs, checked.sizes)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A kernel that can be called."""

    checked: CheckedDef
    kernel: Kernel
    library: ctypes.CDLL
    position: int

    def __call__(
        self, inputs: Arrays, sizes: Mapping[str, int] | None = None, chunks: int = 3
    ) -> tuple[dict[str, np.ndarray], int]:
        """The outputs and the fault flag; phases run in chunks, the last one first."""
        known = bind_sizes(self.checked, inputs, sizes or {})
        values = [known[name] for name in self.checked.sizes]
        c_sizes = (ctypes.c_int64 * max(len(values), 1))(*values)
        n_phases = len(self.kernel.source.phases)
        plan = (ctypes.c_int64 * (2 * n_phases + 2))()
        self.library[f"plan_{self.position}"](c_sizes, plan)
        memories = [_Memory(np.ascontiguousarray(inputs[n])) for n in self.checked.inputs]
        for name in self.checked.outputs:
            kind = self.checked.tensors[name]
            shape = tuple(size_value(s, known) for s in kind.shape)
            memories.append(_Memory(np.empty(shape, kind.dtype.numpy), fill=True))
        shared = _Memory(np.empty(plan[2 * n_phases], np.uint8), fill=True)
        tensors = (ctypes.c_void_p * len(memories))(*(m.address for m in memories))
        fault = ctypes.c_int32(0)
        for phase in range(n_phases):
            extent = plan[2 * phase]
            assert plan[2 * phase + 1] >= 0, "work is negative"
            if extent <= 0 or fault.value:
                continue
            bounds = sorted({extent * k // chunks for k in range(chunks + 1)})
            for begin, end in reversed(list(pairwise(bounds))):
                local = _Memory(np.empty(plan[2 * n_phases + 1], np.uint8), fill=True)
                self.library[f"run_{self.position}"](
                    phase,
                    tensors,
                    c_sizes,
                    ctypes.c_void_p(shared.address),
                    ctypes.c_void_p(local.address),
                    ctypes.c_int64(begin),
                    ctypes.c_int64(end),
                    ctypes.byref(fault),
                )
                local.check("local scratch")
        shared.check("shared scratch")
        names = (*self.checked.inputs, *self.checked.outputs)
        for name, memory in zip(names, memories, strict=True):
            memory.check(name)
        for name, memory in zip(self.checked.inputs, memories, strict=False):
            before = np.ascontiguousarray(inputs[name]).tobytes()
            assert memory.array.tobytes() == before, f"input {name} was written"
        outputs = memories[len(self.checked.inputs) :]
        found = {n: m.array for n, m in zip(self.checked.outputs, outputs, strict=True)}
        return found, fault.value


class _Memory:
    """An aligned copy of an array between two margins."""

    def __init__(self, array: np.ndarray, *, fill: bool = False) -> None:
        self.block = np.full(array.nbytes + 2 * MARGIN + 64, FILL, np.uint8)
        start = -self.block.ctypes.data % 64 + MARGIN
        self.inner = slice(start, start + array.nbytes)
        if not fill:
            self.block[self.inner] = np.frombuffer(array.tobytes(), np.uint8)
        self.array = self.block[self.inner].view(array.dtype).reshape(array.shape)
        self.address = self.block.ctypes.data + start

    def check(self, name: str) -> None:
        """Fail if anything around the array has changed."""
        before, after = self.block[: self.inner.start], self.block[self.inner.stop :]
        clean = (before == FILL).all() and (after == FILL).all()
        assert clean, f"something outside {name} was written"


def unit_text(sources: Sequence[KernelSource]) -> str:
    """One translation unit for many kernels, with functions that can be found by name."""
    parts = [kernel_prelude(), _FREE_DIVISION]
    for position, source in enumerate(sources):
        parts += [functions_of(source), _entry(position, source), _plan(position, source)]
    return "\n".join(parts)


def functions_of(source: KernelSource) -> str:
    """A kernel's text without its prelude."""
    return source.text[source.text.index(f"TCF_KERNEL({source.phases[0].symbol})") :]


def _entry(position: int, source: KernelSource) -> str:
    calls = "".join(
        f"  if (phase == {k}) TCF_CAT({p.symbol}, TCF_SUFFIX)"
        "(tensors, sizes, shared, local, begin, end, fault);\n"
        for k, p in enumerate(source.phases)
    )
    return (
        f'extern "C" __attribute__((visibility("default"))) void run_{position}(int phase, '
        f"{_TYPES}, int64_t begin, int64_t end, int32_t* fault) {{\n{calls}}}"
    )


def _plan(position: int, source: KernelSource) -> str:
    """The extent and the cost of each phase, then the scratch."""
    texts = [text for phase in source.phases for text in (phase.extent, phase.cost)]
    texts += [source.shared_bytes, source.local_bytes]
    lines = [
        f"  const int64_t {name} = sizes[{k}]; (void){name};\n"
        for k, name in enumerate(source.interface.sizes)
    ]
    lines += [f"  plan[{k}] = {guarded(text)};\n" for k, text in enumerate(texts)]
    return (
        f'extern "C" __attribute__((visibility("default"))) void plan_{position}('
        f"const int64_t* sizes, int64_t* plan) {{\n{''.join(lines)}}}"
    )


def build(
    definitions: Sequence[CheckedDef],
    kernels: Sequence[Kernel],
    levels: Sequence[Level],
    folder: Path,
) -> list[list[Compiled]]:
    """Every kernel for every level: compiled together, one library a level."""
    toolchain = Toolchain.default()
    text = unit_text([kernel.source for kernel in kernels])
    units = [Unit("kernels.cpp", text, level) for level in levels]
    found = []
    for level, data in zip(levels, toolchain.compile(units), strict=True):
        path = folder / f"{level.name}.so"
        toolchain.link([data], path)
        library = ctypes.CDLL(str(path))
        found.append(
            [
                Compiled(checked, kernel, library, k)
                for k, (checked, kernel) in enumerate(zip(definitions, kernels, strict=True))
            ]
        )
    return found
