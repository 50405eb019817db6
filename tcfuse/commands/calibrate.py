"""``tcfuse calibrate``: measure this machine once, so that models are planned for it."""

from __future__ import annotations

from collections.abc import Iterator

from tcfuse.calibration import forget, keep
from tcfuse.commands.progress import percentage, print_lines, print_table
from tcfuse.graph.machine import MACHINE, Machine
from tcfuse.store import Store


def run(*, forgotten: bool, quiet: bool) -> int:
    """Measure, keep and print, or go back to the built-in table; the exit status."""
    store = Store.default()
    if forgotten:
        forget(store)
        print_lines(["models are planned with the built-in table again"])
        return 0
    from tcfuse.measuring import measure

    with percentage(quiet) as show:
        measured = measure(show)
    keep(store, measured.rounded())
    if not quiet:
        print_table(("what", "built in", "measured", "used from now on"), rows(measured))
        print_lines([f"kept for {measured.name}"])
    return 0


def rows(measured: Machine) -> Iterator[tuple[str, str, str, str]]:
    """One row for each number, with its unit."""
    used = measured.rounded()
    yield _row("vectors of 16 floats, G/s", 1e9, MACHINE.hertz, measured.hertz, used.hertz)
    numbers = MACHINE.native_us, measured.native_us, used.native_us
    yield _row("a node of ONNX Runtime, us", 1, *numbers)
    numbers = MACHINE.fused_us, measured.fused_us, used.fused_us
    yield _row("a kernel with nothing to do, us", 1, *numbers)
    numbers = MACHINE.session_us, measured.session_us, used.session_us
    yield _row("a call of a session, us", 1, *numbers)
    for (limit, _), (_, rate), (_, step) in zip(
        measured.bandwidth, measured.bandwidth, used.bandwidth, strict=True
    ):
        built_in = MACHINE.copy_rate(limit)
        where = "beyond" if limit == float("inf") else f"up to {limit / (1 << 20):g} MiB"
        yield _row(f"copy {where}, GB/s", 1e3, built_in, rate, step)
    numbers = MACHINE.reorder_rate, measured.reorder_rate, used.reorder_rate
    yield _row("change of layout, GB/s", 1e3, *numbers)
    for name, rate in sorted(measured.rates.items()):
        yield _row(f"{name}, GB/s", 1e3, MACHINE.rates.get(name), rate, used.rates[name])


def _row(
    what: str, unit: float, built_in: float | None, *numbers: float
) -> tuple[str, str, str, str]:
    first = "" if built_in is None else f"{built_in / unit:.3g}"
    measured, used = (f"{number / unit:.3g}" for number in numbers)
    return what, first, measured, used
