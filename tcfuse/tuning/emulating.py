"""The process that runs candidates for GPUs in the emulator, where there is no GPU."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tcfuse.debug import cache_dir, current
from tcfuse.emulator import emulate
from tcfuse.interface import Interface
from tcfuse.isolation import receive, send
from tcfuse.ort.accuracy import compare
from tcfuse.ort.exact import exact_outputs, reduction_length
from tcfuse.ort.feeds import Feed
from tcfuse.ort.sizes import evaluate_size
from tcfuse.targets.base import CudaSource
from tcfuse.targets.geometry import plan
from tcfuse.targets.toolchain import Toolchain
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.tuning.cases import all_sizes, feed_at, points
from tcfuse.tuning.messages import Setup
from tcfuse.tuning.price import counted, micros

SHARED_LIMIT = 99 << 10  # bytes that a block may ask for on the smallest of today's GPUs
NEARLY = 64.0  # times the allowed error that the first kernel may have
LEAST = 4  # of a size that is made smaller
_LONG_S = 86400.0


def serve(limit_s: float) -> None:
    """Price the kernels on standard input until it ends; the answers are JSON."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    pricing: Pricing | None = None
    while True:
        try:
            message = receive(source, time.monotonic() + _LONG_S)
        except (EOFError, TimeoutError):
            return
        try:
            if isinstance(message, Setup):
                pricing, found = Pricing.of(message), {"status": "ok"}
            else:
                assert pricing is not None, "the subject comes first"
                found = pricing.price(message, limit_s)
        except Exception as error:  # told to the parent, which reports it as an internal error
            found = {"status": "refused", "detail": f"{type(error).__name__}: {error}"[:300]}
        send(sink, found, encode=lambda said: json.dumps(said).encode())


def small_sizes(
    checked: CheckedDef, interface: Interface, sizes: Mapping[str, int], most: int
) -> dict[str, int]:
    """Sizes at which there is little to do; the outermost are made smaller first."""
    shapes = [port.type.shape for port in (*interface.outputs, *interface.inputs)]
    derived = {name for name, _ in interface.derived}
    order = dict.fromkeys(size for shape in shapes for size in shape if isinstance(size, str))
    free = [
        name for name in (*order, *interface.sizes) if name in sizes and name not in derived
    ]
    given = {name: value for name, value in sizes.items() if name not in derived}
    for name in dict.fromkeys(free):
        while given[name] > LEAST and points(checked, all_sizes(interface, given)) > most:
            given[name] = max(given[name] // 2, LEAST)
    return all_sizes(interface, given)


@dataclass(slots=True)
class Pricing:
    """One subject: inputs that are small, and what the outputs should be.

    Attributes:
        growth: How much more there is to do at the sizes that are priced.
        shapes: Of the inputs there.
        original: What outputs are held against beside float64; empty before the first kernel,
            which is the one with default knobs.
    """

    checked: CheckedDef
    interface: Interface
    feed: Feed
    growth: float
    shapes: tuple[tuple[int, ...], ...]
    exact: tuple[np.ndarray, ...]
    original: tuple[np.ndarray, ...] = ()
    toolchain: Toolchain = field(
        default_factory=lambda: Toolchain.default(cache_dir(), current().cxx)
    )

    @classmethod
    def of(cls, setup: Setup) -> Pricing:
        """The subject of a setup."""
        interface = setup.interface
        checked = check(parse(setup.definition), sizes=interface.sizes)
        full = all_sizes(interface, setup.sizes)
        small = small_sizes(checked, interface, setup.sizes, setup.most_points)
        few, many = points(checked, small), points(checked, full)
        if few > 4 * setup.most_points:
            raise ValueError(f"{few} instances are too many for the emulator")
        feed = feed_at(interface, checked, small)
        shapes = tuple(
            tuple(evaluate_size(size, full) for size in port.type.shape)
            for port in interface.inputs
        )
        exact = tuple(exact_outputs(checked, interface, feed))
        return cls(checked, interface, feed, many / max(few, 1), shapes, exact)

    def price(self, source: CudaSource, limit_s: float) -> dict[str, Any]:
        """What came of one kernel."""
        made = emulate(
            source,
            self.feed.arrays,
            shared_limit=SHARED_LIMIT,
            limit_s=limit_s,
            toolchain=self.toolchain,
        )
        if not all(run.finished for run in made.runs) and made.reports:
            return {"status": "timeout", "detail": str(made.reports[-1])}
        if made.reports:
            return {"status": "wrong", "detail": str(made.reports[0])}
        if made.fault:
            return {"status": "wrong", "detail": "an index is out of range"}
        if problem := self.judge(made.outputs):
            return {"status": "wrong", "detail": problem}
        steps = plan(source, self.shapes, shared_limit=SHARED_LIMIT).steps
        return {"status": "ok", "micros": micros(counted(made), steps, self.growth)}

    def judge(self, outputs: Sequence[np.ndarray]) -> str:
        """What is wrong with outputs; those of the first kernel set the standard.

        Where they are not as near to float64 as rounding allows, but near, others may be as
        far from it.
        """
        rounded = [
            exact.astype(port.type.dtype.numpy)
            for exact, port in zip(self.exact, self.interface.outputs, strict=True)
        ]
        problem = self._against(outputs, self.original or rounded, 1.0)
        if problem and not self.original and not self._against(outputs, rounded, NEARLY):
            self.original, problem = tuple(outputs), ""
        self.original = self.original or tuple(rounded)
        return problem

    def _against(
        self, outputs: Sequence[np.ndarray], original: Sequence[np.ndarray], slack: float
    ) -> str:
        length = reduction_length(self.checked, self.feed)
        for k, port in enumerate(self.interface.outputs):
            dtype = port.type.dtype
            found = compare(outputs[k], original[k], self.exact[k], dtype, length)
            if found.verdict and (found.problem or found.error > slack * found.allowed):
                return f"{port.name} of {self.feed.label}: {found.verdict}"
        return ""
