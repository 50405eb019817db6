"""What a kernel looks like from outside: the contract between targets and ``ort.library``."""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.types import TensorType


@dataclass(frozen=True, slots=True)
class Port:
    """A tensor that crosses the boundary of a fused node, in its ONNX shape."""

    name: str
    type: TensorType


@dataclass(frozen=True, slots=True)
class Interface:
    """The signature of a fused node.

    Attributes:
        inputs: In the order of the node's inputs.
        outputs: In the order of the node's outputs.
        sizes: Every size name, in the order in which kernels receive the values.  A name is bound
            by the first input dimension that consists of it alone; every other dimension of every
            input must then agree (checked once a call).
        derived: For each name no input dimension consists of: its value as a C expression over
            names that come earlier in ``sizes`` (``"H * W"``).
        checks: C conditions over the names that must hold, with the sentence to report otherwise.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    sizes: tuple[str, ...]
    derived: tuple[tuple[str, str], ...] = ()
    checks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Phase:
    """One parallel loop; phases of a kernel run one after the other.

    Attributes:
        symbol: Name in the source of ``TCF_KERNEL(symbol)``: a function
            ``void (char* const* tensors, const int64_t* sizes, char* shared, char* local,
            int64_t begin, int64_t end, int32_t* fault)`` that runs iterations ``[begin, end)``.
            ``tensors`` holds the inputs, then the outputs.
        extent: Number of iterations, a C expression over size names.
        cost: Work of one iteration in scalar operations, a C expression over size names.
    """

    symbol: str
    extent: str
    cost: str


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A fused node's kernel in the target's language.

    Attributes:
        name: ``softmax_add_3f2a91c0``: operator names, then a digest of everything that
            determines the text.  It is the custom operator's name too.
        text: Freestanding C++ for a CPU: all it uses comes from ``codegen.mathlib``.
        shared_bytes: Scratch for the whole call, a C expression over size names.
        local_bytes: Scratch for each chunk of iterations, a C expression over size names.
    """

    name: str
    text: str
    interface: Interface
    phases: tuple[Phase, ...]
    shared_bytes: str = "0"
    local_bytes: str = "0"
    tc: str = ""
