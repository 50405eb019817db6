"""Random pairs of a definition and the options that it is compiled with."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

from tcfuse.cuda_options import CudaOptions
from tcfuse.knob import knobs_of
from tcfuse.mapping_options import MappingOptions
from tests.conformance.option_seeds import SEEDS
from tests.conformance.subjects import SIZES, Subject, random_subjects, subjects

TILES = (0, 1, 2, 3, 5, 7, 8, 16, 32, 33, 64)


@dataclass(frozen=True)
class Pair:
    """A definition with the options and the fixed sizes it is compiled with.

    Attributes:
        cuda: Options of kernels for GPUs.
    """

    subject: Subject
    options: MappingOptions
    fixed: Mapping[str, int] = field(default_factory=dict)
    cuda: CudaOptions = field(default_factory=CudaOptions)

    def __str__(self) -> str:
        fixed = f" with {dict(self.fixed)}" if self.fixed else ""
        given = {k: v for k, v in asdict(self.cuda).items() if v != getattr(CudaOptions(), k)}
        cuda = f" --cuda '{json.dumps(given)}'" if given else ""
        return f"{self.subject.name}{fixed}: {self.options.to_json()}{cuda}"


def random_options(rng: random.Random) -> MappingOptions:
    """Each knob at its default, at one of its choices, or at some other legal value."""
    values: dict[str, object] = {}
    for name, known in knobs_of(MappingOptions):
        if rng.random() < 0.4:
            values[name] = rng.choice(known.choices)
    if rng.random() < 0.6:
        values["tile"] = tuple(rng.choice(TILES) for _ in range(rng.randint(1, 4)))
    if rng.random() < 0.3:
        values["unroll"] = rng.randint(1, 40)
    values["isl_operations"] = rng.choice([20_000_000] * 8 + [1, 1_000, 100_000])
    return MappingOptions(**values)  # type: ignore[arg-type]  # each has its knob's type


def random_pairs(count: int, seed: int) -> Iterator[Pair]:
    """The seeds, then definitions with random options; a quarter of these are random too."""
    rng = random.Random(seed)
    known = subjects()
    yield from (Pair(known[s.name], s.options) for s in SEEDS[:count])
    rest = max(count - len(SEEDS), 0)
    chosen = [*known.values()]
    rng.shuffle(chosen)
    drawn = random_subjects(rest // 4, seed)
    for number in range(rest):
        subject = drawn[number // 4] if number % 4 == 3 and number // 4 < len(drawn) else None
        subject = subject or chosen[number % len(chosen)]
        fixed = {s: rng.choice(SIZES) for s in subject.free if rng.random() < 0.3}
        yield Pair(subject, random_options(rng), fixed)


def with_cuda_options(pairs: Iterable[Pair], seed: int) -> list[Pair]:
    """The pairs whose sizes inputs can tell, with random options of kernels for GPUs."""
    rng = random.Random(seed)
    kept = (pair for pair in pairs if has_its_sizes(pair.subject))
    return [replace(pair, cuda=random_cuda_options(rng)) for pair in kept]


def has_its_sizes(subject: Subject) -> bool:
    """Whether every size is in the shape of some input."""
    interface = subject.interface
    shapes = " ".join(str(size) for port in interface.inputs for size in port.type.shape)
    return set(re.findall(r"\w+", shapes)).issuperset(
        set(interface.sizes) - {name for name, _ in interface.derived}
    )


def random_cuda_options(rng: random.Random) -> CudaOptions:
    """Each knob at its default, at one of its choices, or at some other legal value."""
    values = {
        name: rng.choice(known.choices)
        for name, known in knobs_of(CudaOptions)
        if rng.random() < 0.5
    }
    if rng.random() < 0.3:
        values["team"] = 1 << rng.randint(0, 10)
    if rng.random() < 0.3:
        values["block"] = 1 << rng.randint(5, 10)
    if rng.random() < 0.2:
        values["row_groups"] = rng.randint(0, 12)
    if rng.random() < 0.4:
        values["split"] = rng.randint(2, 40)
    return CudaOptions(**values)
