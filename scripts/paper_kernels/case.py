"""What one row of the table measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import onnx_ir as ir

from models.draft import Draft

Sizes = Mapping[str, int]
Shapes = Callable[[SimpleNamespace], dict[str, tuple[int, ...]]]
NumpyForm = Callable[[SimpleNamespace], Sequence[np.ndarray]]
OnnxForm = Callable[[Draft, SimpleNamespace, SimpleNamespace], Sequence[ir.Value]]


@dataclass(frozen=True)
class Step:
    """One kernel of a case.

    Attributes:
        kernel: The file of ``op_library.papers``.
        definition: One of its definitions.
    """

    kernel: str
    definition: str
    sizes: Sizes


@dataclass(frozen=True)
class Case:
    """A kernel, or kernels one after the other, at one set of sizes.

    Attributes:
        name: What ``--only`` selects.
        steps: Kernels; a later one reads what an earlier one wrote, in a shape of its own.
        outputs: Names of the outputs that are compared, those of the last step if none.
        numpy: Formulations in NumPy; the first one in float64 is the reference.  They take the
            inputs in the last step's shapes.
        onnx: Formulations in ONNX operators.  They take values and sizes by name and return
            as many of the outputs, in order, as the others need.
        weights: Inputs that a model may hold as constants.
        shapes: Other shapes for the inputs of the models, of the same memory.
        positions: For each input that holds positions, how many there are.
        touched: For each input that is not read whole, the bytes that are.
        note: What differs from the paper.
    """

    name: str
    steps: tuple[Step, ...]
    numpy: tuple[NumpyForm, ...]
    onnx: tuple[OnnxForm, ...]
    outputs: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    shapes: Shapes | None = None
    positions: Mapping[str, int] = field(default_factory=dict)
    touched: Mapping[str, int] = field(default_factory=dict)
    note: str = ""

    @property
    def sizes(self) -> SimpleNamespace:
        """The sizes of every step, by name."""
        return SimpleNamespace(**{n: v for step in self.steps for n, v in step.sizes.items()})

    @property
    def label(self) -> str:
        """The sizes as the table shows them."""
        return " ".join(f"{name}={value}" for name, value in vars(self.sizes).items())
