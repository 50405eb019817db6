"""What a kernel looks like from outside: the contract between targets and ``ort.library``."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcfuse.codegen.cuda.launch import Launch
from tcfuse.interface import Interface, Port

__all__ = [
    "Compilation",
    "CudaPhase",
    "CudaSource",
    "Interface",
    "KernelSource",
    "KernelTexts",
    "Launch",
    "Phase",
    "Port",
]


@dataclass(frozen=True, slots=True)
class Phase:
    """One parallel loop; phases of a kernel run one after the other.

    Attributes:
        symbol: Name in the source of ``TCF_KERNEL(symbol)``: a function
            ``void (char* const* tensors, const int64_t* sizes, char* shared, char* local,
            int64_t begin, int64_t end, int32_t* fault)`` that runs iterations ``[begin, end)``.
            ``tensors`` holds the inputs, then the outputs.
        extent: Number of iterations, a C expression over size names.
        cost: About how many picoseconds one iteration takes (``codegen.duration``), a C
            expression over size names.
    """

    symbol: str
    extent: str
    cost: str


@dataclass(frozen=True, slots=True)
class Compilation:
    """How machine code is made of a kernel; no result depends on it.

    Attributes:
        instructions: Their order: the ``compiler`` weighs latencies against registers, looks
            at ``latency`` alone, or keeps that of the ``source``; ``auto`` is what was measured
            to be best for the compiler and the instruction set.
        hoisting: Whether what does not change in a loop is computed, or loaded, before it.
        optimization: The compiler's level.
    """

    instructions: str = "auto"
    hoisting: bool = True
    optimization: int = 3


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A fused node's kernel in the target's language.

    Attributes:
        name: ``softmax_add_3f2a91c0``: operator names, then a digest of everything that
            determines the text.  It is the custom operator's name too.
        text: Freestanding C++ for a CPU: all it uses comes from ``codegen.mathlib``.
        shared_bytes: Scratch for the whole call, a C expression over size names.
        local_bytes: Scratch for each chunk of iterations, a C expression over size names.
        compilation: How machine code is made of the text.
    """

    name: str
    text: str
    interface: Interface
    phases: tuple[Phase, ...]
    shared_bytes: str = "0"
    local_bytes: str = "0"
    tc: str = ""
    compilation: Compilation = field(default_factory=Compilation)


@dataclass(frozen=True, slots=True)
class CudaPhase:
    """One step of a kernel on a GPU; a step sees everything that those before it wrote.

    Attributes:
        launches: The first whose condition holds is used; the last one's always does.
    """

    launches: tuple[Launch, ...]


@dataclass(frozen=True, slots=True)
class CudaSource:
    """A fused node's kernel in CUDA C.

    Attributes:
        name: As that of a ``KernelSource``.
        text: CUDA C++17; it includes ``tcf_device.hpp`` (``codegen.device``) and nothing else.
        phases: Launched one after the other on one stream.
        scratch_bytes: Global memory for the whole call, a C expression over size names.
        contract: Whether a multiplication and an addition may be fused.
    """

    name: str
    text: str
    interface: Interface
    phases: tuple[CudaPhase, ...]
    scratch_bytes: str = "0"
    tc: str = ""
    contract: bool = True

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch of every phase."""
        return tuple(launch for phase in self.phases for launch in phase.launches)


@dataclass(frozen=True, slots=True)
class KernelTexts:
    """A kernel with what the stages on the way to it said, as text."""

    source: KernelSource | CudaSource
    proof: str
    tree: str
    mapped: str
