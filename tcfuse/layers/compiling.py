"""From a checked definition to its kernel: in kernel form, through the cache, in the worker."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import UnsupportedError
from tcfuse.interface import Interface
from tcfuse.kernels import (
    CompiledKernel,
    Kernels,
    compile_cached,
    compile_cuda_cached,
    noted,
)
from tcfuse.mapping_options import MappingOptions
from tcfuse.ort.direct import DirectBuild, DirectKernel
from tcfuse.store import Store
from tcfuse.targets.base import CudaSource, KernelSource
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.sema import check

_WORKER = threading.Lock()  # there is one process that compiles


@dataclass(frozen=True, slots=True)
class Settings:
    """How the layers of one text are compiled and called.

    Attributes:
        options: Knobs of every kernel.
        threads: Parts of a call that run at the same time, at most.
        quiet: Do not tell what is compiled.
        sizes: Numbers for sizes, by name.
    """

    options: MappingOptions = field(default_factory=MappingOptions)
    threads: int = 1
    quiet: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)


def fixes_in_text(options: MappingOptions) -> bool:
    """Whether numbers for sizes stand in the text that is compiled.

    Else the schedule is that of any sizes, or the whole kernel is, and a call checks them.
    """
    return options.fix_sizes == "before"


def compile_definition(
    checked: CheckedDef, options: MappingOptions, sizes: Mapping[str, int] | None = None
) -> CompiledKernel[KernelSource]:
    """The CPU's kernel of any checked definition, from the cache if it was compiled before.

    Args:
        checked: The definition, checked with ``affine=False``.
        options: Knobs.
        sizes: Numbers by name; those that are sizes of the definition are fixed.

    Raises:
        UnsupportedError: It is beyond the compiler; the sentence names the definition.
    """
    name = checked.definition.name
    try:
        ready, interface = _ready(checked)
        fixed = {n: v for n, v in (sizes or {}).items() if n in interface.sizes}
        with _WORKER:
            store = Store.default()
            kernel = compile_cached(ready, interface, name, options, store, fixed)
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: {error}") from None
    noted(Kernels(kernel))
    return kernel


def compile_cuda_definition(
    checked: CheckedDef, options: MappingOptions, cuda: CudaOptions
) -> CompiledKernel[CudaSource]:
    """The same for GPUs, with knobs of their own."""
    name = checked.definition.name
    try:
        ready, interface = _ready(checked)
        with _WORKER:
            store = Store.default()
            kernel = compile_cuda_cached(ready, interface, name, options, cuda, store)
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: {error}") from None
    noted(Kernels(cuda=kernel))
    return kernel


def _ready(checked: CheckedDef) -> tuple[CheckedDef, Interface]:
    """A definition in the form that targets take, and its signature."""
    if not checked.outputs:
        raise UnsupportedError("it returns nothing, so there is nothing to compute")
    form = kernel_form(checked)
    return check(form.definition, sizes=form.interface.sizes), form.interface


def contract_of(options: MappingOptions) -> str:
    """Whether a multiplication and an addition may be one rounding."""
    return "off" if options.numerics == "strict" else "fast"


def load_definition(checked: CheckedDef, settings: Settings) -> tuple[DirectKernel, bool]:
    """A definition's kernel in this process, and whether it had to be built.

    Raises:
        UnsupportedError: It is beyond the compiler.
        ToolchainError: There is no compiler, or it failed.
    """
    for name in (*checked.inputs, *checked.outputs):
        if (dtype := checked.tensors[name].dtype).bits < 8:
            sentence = f"{name!r} is {dtype.tc}, of which ONNX has several in a byte"
            raise UnsupportedError(f"{sentence}; a layer takes whole bytes: declare uint8")
    kernel = compile_definition(checked, settings.options, settings.sizes)
    return DirectBuild(kernel.source, contract_of(settings.options)).load()
