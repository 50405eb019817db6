"""What the phases of a kernel share, and what each of them becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcfuse.codegen.cuda.launch import Launch
from tcfuse.codegen.scope import Lines
from tcfuse.codegen.tensors import Tensor
from tcfuse.mapping.storage import Buffer
from tcfuse.poly.polynomial import Polynomial
from tcfuse.poly.scop import Scop


@dataclass(frozen=True, slots=True)
class PhaseText:
    """One phase as CUDA C."""

    text: str
    launches: tuple[Launch, ...]

    @property
    def is_complete(self) -> bool:
        """Whether some launch always holds."""
        return bool(self.launches) and self.launches[-1].when == "1"


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the phases of one kernel share.

    Attributes:
        name: The kernel's, which those of functions start with.
        tensors: Where every tensor is.
        buffers: The storage of temporaries.
        sizes: Names of the sizes.
        offsets: Where each whole temporary starts in the scratch memory.
        scratch: Bytes of the whole temporaries.
        reciprocals: As for ``Evaluation``.
        numerics: As ``MappingOptions`` has it.
    """

    name: str
    scop: Scop
    tensors: Mapping[str, Tensor]
    buffers: Mapping[str, Buffer]
    sizes: Sequence[str]
    offsets: Mapping[str, Polynomial]
    scratch: Polynomial
    reciprocals: bool
    numerics: str

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Type and name of the parameters that every function has."""
        checked = self.scop.checked
        inputs = (self.tensors[name] for name in checked.inputs)
        outputs = (self.tensors[name] for name in checked.outputs)
        return [
            *((f"const {t.raw}* __restrict__", t.name) for t in inputs),
            *((f"{t.raw}* __restrict__", t.name) for t in outputs),
            ("char*", "scratch"),
            ("int32_t*", "fault"),
            *(("int64_t", f"size_{name}") for name in self.sizes),
        ]

    @property
    def signature(self) -> str:
        """The parameters as C text."""
        return ", ".join(f"{kind} {name}" for kind, name in self.parameters)

    def declare(self, lines: Lines) -> None:
        """The sizes and the whole temporaries, where a function starts."""
        for size in self.sizes:
            lines.add(f"const tcf_index {size} = tcf_index(size_{size}); (void){size};")
        for tensor, offset in self.offsets.items():
            t = self.tensors[tensor]
            place = f"scratch + {self.in_bytes(offset)}"
            lines.add(f"{t.raw}* __restrict__ {t.name} = ({t.raw}*)({place});")

    def in_bytes(self, value: Polynomial) -> str:
        """Bytes as C text, in 64 bits: there are more than elements, which have an index."""
        for size in self.sizes:
            value = value.put(size, Polynomial.factor(f"size_{size}"))
        return str(value)

    def idle(self, launch: Launch) -> str:
        """A ``__global__`` function that does nothing."""
        return f"TCF_LAUNCH({launch.block}) {launch.symbol}({self.signature}) {{}}\n"

    def entry(self, launch: Launch, template: str, blocks: int = 1) -> str:
        """A ``__global__`` function that runs an instance of a template.

        Args:
            launch: How it is started.
            template: Name and arguments of the template.
            blocks: That many blocks are to have room on a multiprocessor.
        """
        bounds = f"{launch.block}, {blocks}" if blocks > 1 else str(launch.block)
        arguments = ", ".join(name for _, name in self.parameters)
        return (
            f"TCF_LAUNCH({bounds}) {launch.symbol}({self.signature}) {{\n"
            f"  {template}({arguments});\n}}\n"
        )
