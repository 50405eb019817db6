"""One kernel, compiled once: equal text, signature and options give an equal, cached kernel.

The cache holds the source and what was shown about it; a refusal is kept too, so that a warm
run does not spend time to find it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcfuse.debug import current
from tcfuse.errors import UnsupportedError
from tcfuse.isolation import WORKER
from tcfuse.options import MappingOptions
from tcfuse.ort.record import interface_to_json, source_from_json, source_to_json
from tcfuse.store import Record, Store, key_of, tool_digest
from tcfuse.targets.base import Interface, KernelSource
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.fixed_sizes import with_fixed_interface
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

if TYPE_CHECKING:
    import onnx_ir as ir  # slow to load, and layers do without

KIND = "kernels"


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel's source with the texts of the stages that led to it.

    Attributes:
        key: Names everything that determined it; verification and timing records hang on it.
    """

    key: str
    source: KernelSource
    proof: str
    tree: str
    mapped: str

    @property
    def name(self) -> str:
        """The operator's name in the model."""
        return self.source.name


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A region's kernel and the values it is connected to."""

    kernel: CompiledKernel
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]

    def definition(self) -> CheckedDef:
        """What the kernel computes, from its text."""
        return check(parse(self.kernel.source.tc), sizes=self.kernel.source.interface.sizes)


def compile_cached(
    checked: CheckedDef,
    interface: Interface,
    hint: str,
    options: MappingOptions,
    store: Store,
    fixed: Mapping[str, int] | None = None,
) -> CompiledKernel:
    """The kernel of a definition, from the cache if it was compiled before.

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
    signature = interface_to_json(with_fixed_interface(interface, fixed or {}))
    key = key_of(checked.definition, signature, hint, options.to_json(), tool_digest())
    record = store.get(KIND, key)
    if record is None:
        try:
            kernel = WORKER.compile(str(checked.definition), interface, hint, options, fixed)
        except UnsupportedError as error:
            store.put(KIND, key, {"refused": str(error)})
            raise
        record = {
            "source": source_to_json(kernel.source),
            "proof": kernel.proof,
            "tree": kernel.tree,
            "mapped": kernel.mapped,
        }
        store.put(KIND, key, record)
    if "refused" in record:
        raise UnsupportedError(record["refused"])
    return _from_record(key, record)


def dump(kernel: CompiledKernel) -> None:
    """Write what each stage made of a definition where ``TCFUSE_DUMP`` says."""
    switches = current()
    switches.dump(2, "tc", kernel.name, kernel.source.tc)
    switches.dump(4, "tree", kernel.name, kernel.tree)
    switches.dump(5, "mapped", kernel.name, kernel.mapped)
    switches.dump(7, "cpp", kernel.name, kernel.source.text)


def recall_kernel(store: Store, key: str) -> CompiledKernel | None:
    """The kernel of that key, if the cache still has it."""
    record = store.get(KIND, key)
    return None if record is None or "refused" in record else _from_record(key, record)


def _from_record(key: str, record: Record) -> CompiledKernel:
    source = source_from_json(record["source"])
    return CompiledKernel(key, source, record["proof"], record["tree"], record["mapped"])
