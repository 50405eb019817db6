"""``tcfuse compile``: one definition to the text of its kernel, and what is seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tcfuse.commands.progress import print_lines, print_table, progress
from tcfuse.commands.tc_file import chosen, definitions_of, warn
from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import OptionError, VerificationError
from tcfuse.kernels import CompiledKernel, compile_cached, compile_cuda_cached
from tcfuse.mapping_options import MappingOptions
from tcfuse.options import parse_sizes
from tcfuse.store import Store, write_file
from tcfuse.targets.base import CudaSource, KernelSource
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.kernel_form import KernelForm, kernel_form
from tcfuse.tc.sema import check

if TYPE_CHECKING:
    from tcfuse.emulator import Emulated

HEADER = ("kernel", "launches", "findings", "error", "moved", "sectors", "wavefronts")


@dataclass(frozen=True, slots=True)
class Order:
    """What is compiled, and where its text goes.

    Attributes:
        target: ``cpu`` or ``cuda``.
        emulate: Run the kernel for GPUs on random values.
        counters: Print what each of its accesses costs.
    """

    file: Path
    function: str | None
    sizes: tuple[str, ...]
    target: str
    output: Path | None
    emulate: bool
    counters: bool
    quiet: bool


def run(order: Order, mapping: MappingOptions, cuda: CudaOptions) -> int:
    """Compile, print or write the text, emulate; the exit status.

    Raises:
        VerificationError: The emulator has found something.
    """
    if order.target not in ("cpu", "cuda"):
        raise OptionError(f"no target {order.target!r}; targets are cpu, cuda")
    if order.emulate and order.target != "cuda":
        raise OptionError("--emulate runs kernels for GPUs; use it with --target cuda")
    if order.counters and not order.emulate:
        raise OptionError("--counters counts in the emulator; use it with --emulate")
    sizes = parse_sizes("--size", order.sizes)
    checked = chosen(definitions_of(order.file, sizes, mapping), order.function)
    if not order.quiet:
        warn([checked])
    form = kernel_form(checked)
    ready = check(form.definition, sizes=form.interface.sizes)
    known = {n: v for n, v in sizes.items() if n in form.interface.sizes}
    name, store = checked.definition.name, Store.default()
    kernel: CompiledKernel[KernelSource] | CompiledKernel[CudaSource]
    if order.target == "cpu":
        kernel = compile_cached(ready, form.interface, name, mapping, store, known)
    else:
        kernel = compile_cuda_cached(ready, form.interface, name, mapping, cuda, store, known)
    if order.output is not None:
        write_file(order.output, kernel.source.text.encode())
    elif not order.emulate:
        print_lines([kernel.source.text])
    if order.emulate and isinstance(kernel.source, CudaSource):
        _emulate(order, checked, form, kernel.source, sizes)
    return 0


def _emulate(
    order: Order,
    checked: CheckedDef,
    form: KernelForm,
    source: CudaSource,
    sizes: Mapping[str, int],
) -> None:
    """Run on random values of those sizes, and print what was seen."""
    import numpy as np

    from tcfuse.emulator import emulate
    from tcfuse.layers.sample import error_of, random_array
    from tcfuse.tc.evaluate import evaluate

    if missing := [name for name in checked.sizes if name not in sizes]:
        flags = " ".join(f"--size {name}=64" for name in missing)
        raise OptionError(f"say how large what is emulated is, for example {flags}")
    rng = np.random.default_rng(0)
    names = (*checked.inputs, *checked.inout)
    given = {name: random_array(checked.tensors[name], sizes, rng) for name in names}
    ports = form.interface.inputs
    with progress(order.quiet) as show:
        show(f"emulating {source.name}")
        done = emulate(source, [given[n] for n, _ in zip(names, ports, strict=True)])
    exact = evaluate(checked, given, sizes)
    pairs = zip(checked.outputs, done.outputs, strict=True)
    error = max(error_of(found, exact[name]) for name, found in pairs)
    if not order.quiet:
        _print(source, done, error, counters=order.counters)
    if done.reports or done.fault:
        first = done.reports[0] if done.reports else "an index is out of range"
        raise VerificationError(f"{source.name}: {first}")


def _print(source: CudaSource, done: Emulated, error: float, *, counters: bool) -> None:
    from tcfuse.emulator.report import SITE_HEADER, Site, site_rows

    def worst(sites: Sequence[Site], space: str) -> str:
        return f"{max((s.factor for s in sites if s.space == space), default=1.0):.2f}"

    sites = [site for launch in done.runs for site in launch.sites]
    moved = done.moved_bytes / max(1, done.compulsory_bytes)
    found = str(len(done.reports) + done.fault)
    row = (source.name, str(len(done.runs)), found, f"{error:.1e}", f"{moved:.2f}")
    print_table(HEADER, [(*row, worst(sites, "global"), worst(sites, "shared"))])
    print_lines(str(report) for report in done.reports)
    for launch in done.runs if counters else ():
        print_lines(["", f"# {launch.symbol}: {launch.blocks} blocks"])
        print_table(SITE_HEADER, site_rows(launch.sites))
