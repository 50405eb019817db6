"""The signature of a fused node: what composition promises and everything below relies on."""

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
        sizes: Every size name, in the order in which kernels receive the values.  The first
            input dimension that consists of a name alone binds it; every other dimension of
            every input must then agree (checked once a call).
        derived: For each name no input dimension consists of: its value as a C expression over
            names that come earlier in ``sizes`` (``"H * W"``).
        checks: C conditions over the names that must hold, with the sentence to report if not.
        facts: Affine conditions over the names, as isl text, that hold in every call: they
            follow from what the derived names are, or are among ``checks``.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    sizes: tuple[str, ...]
    derived: tuple[tuple[str, str], ...] = ()
    checks: tuple[tuple[str, str], ...] = ()
    facts: tuple[str, ...] = ()
