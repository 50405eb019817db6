"""How pairs of a definition and options become kernels that can be called."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from tcfuse.interface import Interface
from tcfuse.targets import cuda
from tcfuse.targets.compilers import Level
from tcfuse.targets.cpu import compile_kernel
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.sema import check
from tests.conformance.option_pairs import Pair
from tests.conformance.subjects import Subject
from tests.targets.circumstances import Circumstances, without_some_launches
from tests.targets.emulated import EmulatedKernel, emulated
from tests.targets.kernels import Arrays, build


class Kernel(Protocol):
    """A kernel that can be called, as ``Compiled``."""

    def __call__(
        self, inputs: Arrays, sizes: Mapping[str, int], *, chunks: int
    ) -> tuple[Arrays, int]:
        """The outputs and the fault flag."""


class Way(Protocol):
    """How pairs become kernels."""

    def compile(self, pair: Pair, hint: str) -> Any:
        """A pair's kernel; ``hint`` tells its functions from others."""

    def build(self, pairs: Sequence[Pair], made: Sequence[Any]) -> Sequence[Kernel]:
        """The kernels of pairs, together."""


@dataclass(frozen=True)
class ForLevel:
    """Kernels for this machine's processor; ``folder`` is for what is built."""

    level: Level
    folder: Path

    def compile(self, pair: Pair, hint: str) -> Any:
        """A pair's kernel."""
        subject = pair.subject
        return compile_kernel(
            subject.checked, subject.interface, hint, pair.options, pair.fixed
        )

    def build(self, pairs: Sequence[Pair], made: Sequence[Any]) -> Sequence[Kernel]:
        """The kernels, in one library."""
        (row,) = build([p.subject.checked for p in pairs], made, [self.level], self.folder)
        return row


@dataclass(frozen=True)
class ForEmulator:
    """Kernels for GPUs, in the emulator."""

    def compile(self, pair: Pair, hint: str) -> Any:
        """A pair's kernel."""
        given = *bindable(pair.subject), hint
        return cuda.compile_kernel(*given, pair.options, pair.cuda, pair.fixed)

    def build(self, pairs: Sequence[Pair], made: Sequence[Any]) -> Sequence[Kernel]:
        """The kernels, in one program."""
        return [AnyLaunch(kernel) for kernel in emulated([one.source for one in made])]


def bindable(subject: Subject) -> tuple[CheckedDef, Interface]:
    """A subject in a form whose sizes follow from the shapes of its inputs."""
    interface = subject.interface
    found = {size for port in interface.inputs for size in port.type.shape}
    found |= {name for name, _ in interface.derived}
    if found.issuperset(interface.sizes):
        return subject.checked, interface
    form = kernel_form(subject.checked)
    return check(form.definition, sizes=form.interface.sizes), form.interface


@dataclass(frozen=True)
class AnyLaunch:
    """A kernel on devices of all kinds, with any of the launches whose conditions hold."""

    kernel: EmulatedKernel

    def __call__(
        self, inputs: Arrays, sizes: Mapping[str, int], *, chunks: int
    ) -> tuple[Arrays, int]:
        """The outputs and the fault flag."""
        source = self.kernel.source
        rng = random.Random(f"{source.name} {sorted(sizes.items())} {chunks}")
        chosen = replace(
            self.kernel,
            source=without_some_launches(source, rng),
            circumstances=Circumstances.drawn(source, rng),
        )
        return chosen(inputs, sizes, chunks=chunks)
