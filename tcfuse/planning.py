"""Which regions to try, by what they take on this machine, and how good that guess was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median  # NumPy's brings its masked arrays along: 0.03 s

import numpy as np
import onnx_ir as ir

from tcfuse.calibration import calibrated
from tcfuse.graph.cost import estimate
from tcfuse.graph.fusion import Field, fuse_all, graphs_of
from tcfuse.graph.plan import FusionGroup, FusionPlan
from tcfuse.options import OptimizeOptions
from tcfuse.ort.model_feeds import Wishes, named_sizes
from tcfuse.store import Store


def plan(model: ir.Model, options: OptimizeOptions, store: Store) -> tuple[FusionPlan, ...]:
    """The greedy plans of the main graph and of every body in it.

    Regions are chosen for the sizes that a person asked for and, where a size may be any, for
    one at which a kernel pays.  What is predicted is for the sizes that will be measured.
    """
    sizes, asked = _sizes(model, options)
    machine = calibrated(store)
    plans = fuse_all(model, conservative=options.gate, machine=machine, sizes=asked)
    return tuple(replace(found, sizes=sizes) for found in plans)


def fields(model: ir.Model, options: OptimizeOptions, store: Store) -> tuple[Field, ...]:
    """What regions can be made of in each graph, priced for the sizes that are measured."""
    sizes, _ = _sizes(model, options)
    machine, opsets = calibrated(store), model.opset_imports
    return tuple(
        Field.of(graph, opsets, conservative=options.gate, machine=machine, sizes=sizes)
        for graph in graphs_of(model)
    )


def _sizes(model: ir.Model, options: OptimizeOptions) -> tuple[dict[str, int], dict[str, int]]:
    """The values of size names in measurements, and those that a person gave."""
    wishes = Wishes(options.dim, options.input_shapes)
    sizes = named_sizes(model, wishes)
    return sizes, {name: sizes[name] for name in wishes.names(model) if name in sizes}


def predicted(group: FusionGroup, plans: Iterable[FusionPlan]) -> dict[str, float]:
    """Microseconds of a region and its speedup, as the gate would measure it alone.

    Calling a session is part of what the gate measures, with the kernel and without.
    """
    found = next(iter(plans))
    cost = estimate(group, found.sizes, found.machine)
    before = found.machine.session_us + cost.native_us
    after = found.machine.session_us + cost.fused_us
    return {"before_us": before, "after_us": after, "speedup": before / after}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How predicted speedups compare with measured ones.

    Attributes:
        ratio: Median of predicted over measured.
        factor: By which half of the predictions are off at most, up or down.
        rank: Spearman's correlation: 1 when the order is right.
        count: Number of kernels.
    """

    ratio: float
    factor: float
    rank: float
    count: int

    def __str__(self) -> str:
        return (
            f"predicted {self.ratio:.2f} of the measured speedup, half of them within a factor "
            f"of {self.factor:.2f}, rank correlation {self.rank:.2f} ({self.count} kernels)"
        )


def accuracy(
    pairs: Iterable[tuple[Mapping[str, float], Mapping[str, float]]], key: str = "speedup"
) -> Accuracy | None:
    """Compare predicted with measured numbers; ``None`` for less than three kernels."""
    both = [(a[key], b[key]) for a, b in pairs if key in a and key in b]
    if len(both) < 3:
        return None
    guessed, seen = np.log(np.array(both)).T
    off = guessed - seen
    return Accuracy(
        ratio=float(np.exp(median(off))),
        factor=float(np.exp(median(np.abs(off)))),
        rank=_rank_correlation(guessed, seen),
        count=len(both),
    )


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's; 0 where all values of one side are equal."""
    ranks = np.array([_ranks(a), _ranks(b)])
    if not ranks.std(axis=1).all():
        return 0.0
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """The place of each value in order; equal ones share the middle of theirs."""
    less = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    return np.asarray(less + (equal - 1) / 2)
