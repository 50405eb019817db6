"""Programs as people write them, compiled in kernel form and run beside the evaluator."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tcfuse.interface import Interface
from tcfuse.mapping_options import MappingOptions
from tcfuse.ort.c_text import guarded
from tcfuse.targets.compilers import Level
from tcfuse.targets.cpu import Kernel, compile_kernel
from tcfuse.targets.toolchain import Toolchain, Unit
from tcfuse.tc.binding import size_value
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.kernel_form import KernelForm, kernel_form
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tests.targets.kernels import Arrays, Compiled, unit_text

GROUP = 25  # programs in one translation unit

_C = {
    "tcf_min": min,
    "tcf_max": max,
    "tcf_floor_div": lambda a, b: a // b,
    "tcf_nonzero": lambda a: a or 1,
}


class RefusedError(Exception):
    """A check of the signature does not hold."""


@dataclass(frozen=True)
class Written:
    """A program and the sizes to try.

    Attributes:
        below: For each integer input that holds positions, the size they stay below.
    """

    text: str
    sizes: Sequence[Mapping[str, int]] = ({},)
    below: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Ready:
    """A program that is compiled but not built.

    Attributes:
        checked: As it was written.
        formed: As the kernel was made from.
    """

    checked: CheckedDef
    form: KernelForm
    formed: CheckedDef
    kernel: Kernel


def ready(text: str, name: str = "k", options: MappingOptions | None = None) -> Ready:
    """The kernel of a program; ``name`` tells its functions from others."""
    checked = check(parse(text), affine=False)
    form = kernel_form(checked)
    formed = check(parse(str(form.definition)), sizes=form.interface.sizes)
    kernel = compile_kernel(formed, form.interface, name, options or MappingOptions())
    return Ready(checked, form, formed, kernel)


def build_all(programs: Sequence[Ready], level: Level, folder: Path) -> list[Compiled]:
    """Every program, in a few libraries that are compiled at the same time."""
    groups = [programs[k : k + GROUP] for k in range(0, len(programs), GROUP)]
    texts = (unit_text([program.kernel.source for program in group]) for group in groups)
    units = [Unit(f"kernels{k}.cpp", text, level) for k, text in enumerate(texts)]
    toolchain = Toolchain.default()
    found: list[Compiled] = []
    for k, (group, data) in enumerate(zip(groups, toolchain.compile(units), strict=True)):
        path = folder / f"{k}.so"
        toolchain.link([data], path)
        library = ctypes.CDLL(str(path))
        found += [Compiled(p.formed, p.kernel, library, at) for at, p in enumerate(group)]
    return found


def sizes_of(interface: Interface, inputs: Arrays) -> dict[str, int]:
    """The value of every size, as the operator's table computes it.

    Raises:
        RefusedError: A dimension is wrong, or a check does not hold.
    """
    known: dict[str, int] = {}
    computed = {name for name, _ in interface.derived}
    dimensions = [
        (size, length)
        for port in interface.inputs
        for size, length in zip(port.type.shape, inputs[port.name].shape, strict=True)
    ]
    for size, length in dimensions:
        if isinstance(size, str) and size in interface.sizes and size not in computed:
            known.setdefault(size, length)
    for name, text in interface.derived:
        known[name] = _value(text, known)
    for size, length in dimensions:
        if size_value(size, known) != length:
            raise RefusedError(f"a dimension is {length} instead of {size}")
    for condition, sentence in interface.checks:
        if not _value(condition, known):
            raise RefusedError(sentence)
    for fact in interface.facts:
        assert _value(re.sub(r"(?<![<>])=", "==", fact), known), f"{fact} does not hold"
    return known


def _value(text: str, known: Mapping[str, int]) -> int:
    """C text as a number."""
    if "==" not in text:
        assert "&&" not in text
    return int(eval(guarded(text).replace("/", "//"), dict(_C), dict(known)))


def inputs_of(
    checked: CheckedDef, sizes: Mapping[str, int], below: Mapping[str, str | int], seed: int = 0
) -> dict[str, np.ndarray]:
    """An array for each parameter, and for each output that starts from old elements."""
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {}
    for name in (*checked.inputs, *checked.inout):
        kind = checked.tensors[name]
        shape = tuple(size_value(s, sizes) for s in kind.shape)
        if name in below:
            found[name] = rng.integers(0, size_value(below[name], sizes), shape)
        elif kind.dtype.is_float:
            found[name] = rng.standard_normal(shape)
        elif kind.dtype.tc == "bool":
            found[name] = rng.integers(0, 2, shape)
        else:
            found[name] = rng.integers(0 if kind.dtype.tc[0] == "u" else -9, 9, shape)
        found[name] = np.asarray(found[name]).astype(kind.dtype.numpy)
    return found


def kernel_inputs(program: Ready, given: Arrays) -> dict[str, np.ndarray]:
    """The arrays under the names of the kernel's inputs."""
    names = (*program.checked.inputs, *program.checked.inout)
    ports = program.form.interface.inputs
    return {port.name: given[name] for port, name in zip(ports, names, strict=True)}
