"""``tcfuse.tune``: the kernels of a model, or of a file of definitions, tuned and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcfuse.errors import InputError
from tcfuse.mapping_options import MappingOptions
from tcfuse.options import OptimizeOptions
from tcfuse.ort.model_feeds import Wishes
from tcfuse.result import Source, path_of
from tcfuse.run import Progress
from tcfuse.store import read_text
from tcfuse.tc.fixing import check_with_sizes
from tcfuse.tc.parser import parse_file
from tcfuse.tuning.budget import seconds_of
from tcfuse.tuning.campaign import Campaign, Search
from tcfuse.tuning.evaluators import Evaluators
from tcfuse.tuning.expected import expected
from tcfuse.tuning.kept import Wisdom
from tcfuse.tuning.protocols import Evaluator
from tcfuse.tuning.report import TuningReport
from tcfuse.tuning.subjects import (
    Subjects,
    selected,
    subjects_of_definitions,
    subjects_of_model,
)
from tcfuse.tuning.tuned import State, Task, Tuned
from tcfuse.wisdom.database import Database
from tcfuse.wisdom.exchange import Collection

BUDGET = "5m"


@dataclass(frozen=True, slots=True)
class Order:
    """What is tuned, and how.

    Attributes:
        source: A model, or the path of a file of definitions.
        seconds: The time for all kernels.
        search: How candidates are chosen.
        only: Names of kernels, beginnings of names, or places; nothing: all of them.
        threads: How many work on a call.
        workers: Candidates that are measured at the same time.
        scheduler: Address of a scheduler whose workers measure.
        again: Tune also what was tuned before.
        wisdom: A file of what is known; its entries count as tuned.
        sizes: Of definitions.
        options: Of ``optimize``.
    """

    source: Source
    seconds: float
    search: Search = field(default_factory=Search)
    only: Sequence[str] = ()
    threads: int = 1
    workers: int = 1
    scheduler: str = ""
    again: bool = False
    wisdom: Path | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> Path | None:
        """The file of definitions, if it is one."""
        path = path_of(self.source)
        return path if path is not None and path.suffix == ".tc" else None


def tune(model: Source, budget: str | float = BUDGET, **options: Any) -> Wisdom:
    """Look for faster kernels of ``model`` by measuring, and remember them for ``optimize``.

    Args:
        model: A path, a ``ModelProto`` or an ``onnx_ir.Model``; or the path of a ``.tc`` file.
        budget: The time for all kernels: seconds, or a text like ``90s`` or ``5m``.
        options: Fields of ``Order`` and ``Search`` by name, which are flags of ``tcfuse tune``;
            the others are those of ``optimize``.

    Raises:
        InputError: The model cannot be read.
        OptionError: An option is not known, or names what the model does not have.
        ToolchainError: There is no compiler, or it failed.
    """
    own = {name: options.pop(name) for name in _ORDER if name in options}
    chosen = {name: options.pop(name) for name in _SEARCH if name in options}
    order = Order(model, seconds_of(budget), Search(**chosen), options=options, **own)
    found = subjects(order)
    with Database.default() as database:
        return Wisdom(tuple(run(order, found.tasks, database)))


_ORDER = ("only", "threads", "workers", "scheduler", "again", "sizes")
_SEARCH = ("sampler", "population", "generations", "seed", "forced")


def subjects(order: Order, progress: Progress = str) -> Subjects:
    """The kernels that are wanted.

    Raises:
        InputError, OptionError, ToolchainError: See ``tune``.
    """
    if (file := order.file) is not None:
        found = _of_file(file, order)
    else:
        options = {**order.options, "threads": order.threads}
        found = subjects_of_model(order.source, progress=progress, **options)
    return Subjects(selected(found.tasks, order.only), found.result)


def run(
    order: Order,
    tasks: Sequence[Task],
    database: Database,
    show: Callable[[State], object] = lambda state: None,
    evaluator: Evaluator | None = None,
) -> Iterator[Tuned]:
    """What comes of each kernel, as soon as it is known; an interrupt ends it well."""
    if order.wisdom is not None and order.wisdom.exists():
        database.record(*Collection.read(order.wisdom).entries)
    with closing(evaluator or Evaluators(order.workers, order.scheduler)) as measuring:
        yield from Campaign(
            tasks, order.search, measuring, database, order.seconds, show, order.again
        ).run()


def report_of(order: Order, found: Subjects, kernels: Sequence[Tuned]) -> TuningReport:
    """What came of it."""
    wishes = Wishes()
    if order.file is None:
        chosen = OptimizeOptions.of(**order.options)
        wishes = Wishes(chosen.dim, chosen.input_shapes)
    search = order.search
    return TuningReport(
        str(path_of(order.source) or "the model"),
        kernels,
        expected(found.result, wishes, kernels),
        {
            "sampler": search.sampler,
            "population": search.population,
            "seed": search.seed,
            "seconds": order.seconds,
        },
        next((k.task.problem.device for k in kernels), ""),
    )


def _of_file(file: Path, order: Order) -> Subjects:
    """The definitions of a file, at the sizes that are asked for."""
    parsed = parse_file(read_text(file), str(file))
    if not parsed:
        raise InputError(f"{file}: there is no definition in it")
    definitions = check_with_sizes(parsed, order.sizes, shown=True)
    target = str(order.options.get("target", "cpu"))
    numerics = str(order.options.get("numerics", MappingOptions().numerics))
    return subjects_of_definitions(
        definitions, order.sizes, target=target, numerics=numerics, threads=order.threads
    )
