"""One kernel, compiled once: equal text, signature and options give an equal, cached kernel.

The cache holds the source and what was shown about it; a refusal is kept too, so that a warm
run does not spend time to find it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from tcfuse import profile
from tcfuse.cuda_options import CudaOptions
from tcfuse.debug import current
from tcfuse.errors import UnsupportedError
from tcfuse.isolation import WORKER
from tcfuse.mapping_options import MappingOptions
from tcfuse.options import OptimizeOptions
from tcfuse.ort.record import (
    cuda_source_from_json,
    cuda_source_to_json,
    interface_to_json,
    source_from_json,
    source_to_json,
)
from tcfuse.store import Record, Store, key_of, tool_digest
from tcfuse.targets.base import CudaSource, Interface, KernelSource
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.fixed_sizes import with_fixed_interface
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.wisdom.advice import Advice
from tcfuse.wisdom.problem import Layer

if TYPE_CHECKING:
    import onnx_ir as ir  # slow to load, and layers do without

log = logging.getLogger(__name__)

KIND = "kernels"

Source = TypeVar("Source", KernelSource, CudaSource)


@dataclass(frozen=True, slots=True)
class CompiledKernel(Generic[Source]):
    """A kernel's source with the texts of the stages that led to it.

    Attributes:
        key: Names everything that determined it; verification and timing records hang on it.
    """

    key: str
    source: Source
    proof: str
    tree: str
    mapped: str

    @property
    def name(self) -> str:
        """Its name, which is that of the operator that has no kernel for another target."""
        return self.source.name


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels of one definition: one for each target that was asked for.

    Attributes:
        cpu: The CPU's.
        cuda: The one for GPUs.
        without_cuda: Why there is none for GPUs, where one was asked for.
        advice: The knobs of each target's that wisdom is behind.
    """

    cpu: CompiledKernel[KernelSource] | None = None
    cuda: CompiledKernel[CudaSource] | None = None
    without_cuda: str = ""
    advice: Mapping[str, Advice] = field(default_factory=dict)

    @property
    def first(self) -> CompiledKernel[KernelSource] | CompiledKernel[CudaSource]:
        """The one that the operator is named after: the CPU's, where there is one."""
        found = self.cpu or self.cuda
        assert found is not None, "a region without kernels has no operator"
        return found

    @property
    def name(self) -> str:
        """The operator's name in the model."""
        return self.first.name

    @property
    def key(self) -> str:
        """Names everything that determined them."""
        return key_of(*(kernel.key for kernel in (self.cpu, self.cuda) if kernel is not None))

    @property
    def interface(self) -> Interface:
        """Their signature."""
        return self.first.source.interface

    @property
    def tc(self) -> str:
        """What they compute, as text."""
        return self.first.source.tc

    def definition(self) -> CheckedDef:
        """What they compute, from that text."""
        return check(parse(self.tc), sizes=self.interface.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A region's kernels and the values they are connected to.

    Attributes:
        layer: The region as wisdom knows it; ``None`` where nobody will ask.
        asked: Names what wisdom knew of it; empty where that was nothing.
    """

    kernels: Kernels
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    layer: Layer | None = None
    asked: str = ""


def compile_cached(
    checked: CheckedDef,
    interface: Interface,
    hint: str,
    options: MappingOptions,
    store: Store,
    fixed: Mapping[str, int] | None = None,
) -> CompiledKernel[KernelSource]:
    """The CPU's kernel of a definition, from the cache if it was compiled before.

    Args:
        checked: The definition.
        interface: Its signature.
        hint: The kernel's name, to which a digest is appended.
        options: Its knobs.
        store: The cache.
        fixed: Sizes that the kernel may take for granted, and checks in every call.

    Raises:
        UnsupportedError: The target cannot do it.
        OptionError: A fixed size is no size of the definition.
    """
    key, record = _record(checked, interface, hint, options, None, store, fixed)
    return _cpu_kernel(key, record)


def compile_cuda_cached(
    checked: CheckedDef,
    interface: Interface,
    hint: str,
    options: MappingOptions,
    cuda: CudaOptions,
    store: Store,
    fixed: Mapping[str, int] | None = None,
) -> CompiledKernel[CudaSource]:
    """The same for GPUs, with knobs of their own."""
    key, record = _record(checked, interface, hint, options, cuda, store, fixed)
    return _cuda_kernel(key, record)


def compile_targets(
    checked: CheckedDef,
    interface: Interface,
    hint: str,
    options: OptimizeOptions,
    store: Store,
    advice: Mapping[str, Advice] | None = None,
) -> Kernels:
    """A kernel for each target; one that is for the CPU alone is better than none.

    Args:
        checked: The definition.
        interface: Its signature.
        hint: The kernels' name, to which a digest is appended.
        options: Of the run.
        store: The cache.
        advice: Knobs that wisdom has for a target; they take the place of the options'.

    Raises:
        UnsupportedError: There is none for the CPU, or for the only target.
    """
    without_cuda, cpu, cuda = "", None, None
    given, had = advice or {}, dict[str, Advice]()
    named = checked, interface, hint

    def cpu_kernel(known: Advice | None) -> CompiledKernel[KernelSource]:
        knobs = options.mapping if known is None else known.mapping(options.mapping)
        return compile_cached(*named, knobs, store)

    def cuda_kernel(known: Advice | None) -> CompiledKernel[CudaSource]:
        knobs = options.mapping if known is None else known.mapping(options.mapping)
        own = options.cuda if known is None else known.cuda()
        return compile_cuda_cached(*named, knobs, own, store)

    if "cpu" in options.targets:
        cpu = _advised(cpu_kernel, "cpu", given, had)
    if "cuda" in options.targets:
        try:
            cuda = _advised(cuda_kernel, "cuda", given, had)
        except (UnsupportedError, RuntimeError) as error:
            if cpu is None:
                raise
            log.info("%s has no kernel for GPUs: %s", cpu.name, error)
            fault = "" if isinstance(error, UnsupportedError) else "internal error: "
            without_cuda = f"{fault}{error}"
    return Kernels(cpu, cuda, without_cuda, had)


def _advised(
    compiled: Callable[[Advice | None], CompiledKernel[Source]],
    target: str,
    given: Mapping[str, Advice],
    had: dict[str, Advice],
) -> CompiledKernel[Source]:
    """The kernel with the knobs of wisdom, or without them where they do not suit it.

    Args:
        compiled: Makes it, with advice or without.
        target: What it is for.
        given: What wisdom advises.
        had: Where it is put down what the kernel has.
    """
    known = given.get(target)
    if known is None or not known.knobs:
        return compiled(None)
    try:
        kernel = compiled(known)
    except (UnsupportedError, RuntimeError) as error:
        log.info("knobs of wisdom do not suit a kernel: %s", error)
        had[target] = Advice(origin=f"the knobs of wisdom do not suit it: {error}")
        return compiled(None)
    had[target] = known
    return kernel


def _record(
    checked: CheckedDef,
    interface: Interface,
    hint: str,
    options: MappingOptions,
    cuda: CudaOptions | None,
    store: Store,
    fixed: Mapping[str, int] | None,
) -> tuple[str, Record]:
    """The key and the record of a kernel, which is made if there is none."""
    signature = interface_to_json(with_fixed_interface(interface, fixed or {}))
    target = () if cuda is None else ("cuda", str(cuda))
    key = key_of(checked.definition, signature, hint, options.to_json(), *target, tool_digest())
    record = store.get(KIND, key)
    profile.found(profile.ISL, record)
    if record is None:
        text = str(checked.definition)
        try:
            kernel = WORKER.compile(text, interface, hint, options, fixed, cuda)
        except UnsupportedError as error:
            store.put(KIND, key, {"refused": str(error)})
            raise
        source = kernel.source
        record = {
            "source": source_to_json(source)
            if isinstance(source, KernelSource)
            else cuda_source_to_json(source),
            "proof": kernel.proof,
            "tree": kernel.tree,
            "mapped": kernel.mapped,
        }
        store.put(KIND, key, record)
    if "refused" in record:
        raise UnsupportedError(record["refused"])
    return key, record


def noted(kernels: Kernels) -> None:
    """Count them, and write what each stage made of them where ``TCFUSE_DUMP`` says."""
    profile.kernel(kernels.name)
    switches = current()
    for kernel, prefix, suffix in ((kernels.cpu, "", "cpp"), (kernels.cuda, "cuda-", "cu")):
        if kernel is None:
            continue
        if kernel is kernels.first:
            switches.dump(2, "tc", kernel.name, kernel.source.tc)
        switches.dump(4, f"{prefix}tree", kernel.name, kernel.tree)
        switches.dump(5, f"{prefix}mapped", kernel.name, kernel.mapped)
        switches.dump(7, suffix, kernel.name, kernel.source.text)


def recall_kernels(
    store: Store,
    cpu: str | None,
    cuda: str | None,
    without_cuda: str,
    advice: Mapping[str, Advice],
) -> Kernels | None:
    """The kernels of those keys, if the cache still has them."""
    keys = [key for key in (cpu, cuda) if key is not None]
    records = {key: store.get(KIND, key) for key in keys}
    if any(record is None or "refused" in record for record in records.values()):
        return None
    return Kernels(
        None if cpu is None else _cpu_kernel(cpu, records[cpu] or {}),
        None if cuda is None else _cuda_kernel(cuda, records[cuda] or {}),
        without_cuda,
        advice,
    )


def _cpu_kernel(key: str, record: Record) -> CompiledKernel[KernelSource]:
    source = source_from_json(record["source"])
    return CompiledKernel(key, source, record["proof"], record["tree"], record["mapped"])


def _cuda_kernel(key: str, record: Record) -> CompiledKernel[CudaSource]:
    source = cuda_source_from_json(record["source"])
    return CompiledKernel(key, source, record["proof"], record["tree"], record["mapped"])
