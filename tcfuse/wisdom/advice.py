"""Which knobs a kernel gets, and why: those that were tuned, or those of the nearest sizes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping_options import MappingOptions
from tcfuse.store import key_of
from tcfuse.wisdom.nearest import distance, nearest
from tcfuse.wisdom.problem import ANY_DEVICE, Entry, Problem
from tcfuse.wisdom.record import cuda_options
from tcfuse.wisdom.versions import current_versions, stale

if TYPE_CHECKING:
    from tcfuse.wisdom.database import Database  # SQLite takes its time

TUNED, TRIED, NEAR = "tuned", "tried at these sizes", "of near sizes"


@dataclass(frozen=True, slots=True)
class Advice:
    """The knobs that a kernel gets.

    Attributes:
        knobs: What differs from the defaults; empty: nothing does.
        origin: Where they come from, for people; empty where nothing was known.
        rivals: Knobs of near sizes that are worth a try, these among them; none where
            ``knobs`` were measured at these sizes.
        sizes: What ``knobs`` were measured at, where that is not these sizes.
    """

    knobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    origin: str = ""
    rivals: tuple[Mapping[str, Mapping[str, Any]], ...] = ()
    sizes: tuple[int, ...] = ()

    @property
    def question(self) -> str:
        """Names what was known; empty where nothing was."""
        return (
            key_of(json.dumps([self.knobs, self.rivals], sort_keys=True)) if self.origin else ""
        )

    def mapping(self, options: MappingOptions) -> MappingOptions:
        """The knobs for a kernel of a run with ``options``."""
        own = self.knobs.get("mapping", {})
        return MappingOptions.of({**own, "numerics": options.numerics})

    def cuda(self) -> CudaOptions:
        """Those of a kernel for GPUs."""
        return cuda_options(self.knobs.get("cuda", {}))

    def to_record(self) -> dict[str, Any]:
        """What is kept of it: the knobs, and where they come from."""
        return {"knobs": json.loads(json.dumps(self.knobs)), "origin": self.origin}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Advice:
        """The advice that ``to_record`` describes."""
        return cls(record["knobs"], record["origin"])


DEFAULTS = Advice()


@dataclass(slots=True)
class Advisor:
    """All wisdom that one run asks: files that it was given, then the cache's.

    Attributes:
        given: Entries of files, which go first.
        database: The cache's; ``None`` where it is not asked.
        refused: What could not be read of the files.
    """

    given: Sequence[Entry] = ()
    database: Database | None = None
    refused: Sequence[str] = ()
    _stale: dict[str, str] = field(default_factory=dict, repr=False)
    _said: dict[str, Advice] = field(default_factory=dict, repr=False)
    _known: bool | None = field(default=None, repr=False)

    @property
    def knows(self) -> bool:
        """Whether there is any wisdom to ask."""
        if self._known is None:
            found = self.database is not None and self.database.path.exists()
            self._known = bool(self.given) or found
        return self._known

    def advise(self, problem: Problem) -> Advice:
        """The knobs of the best entry for ``problem``, or of the nearest one."""
        if not self.knows:
            return DEFAULTS
        if problem.key not in self._said:
            self._said[problem.key] = self._found(problem)
        return self._said[problem.key]

    def _found(self, problem: Problem) -> Advice:
        """The same, from the entries."""
        if exact := self._usable(problem, lambda known: known.top(problem), _same_problem):
            return Advice(exact[0].knobs, _origin(exact[0], problem))
        # Only now, because there may be many.
        family = self._usable(problem, lambda known: known.family(problem), _same_family)
        if exact := [entry for entry in family if entry.problem.sizes == problem.sizes]:
            return Advice(exact[0].knobs, _origin(exact[0], problem))
        alike = [entry for entry in family if entry.problem.threads == problem.threads]
        near = nearest(problem, alike or family)
        if not near:
            return DEFAULTS
        first = near[0]
        rivals = tuple(entry.knobs for entry in near)
        shown = ", ".join(map(str, first.problem.sizes))
        far = distance(problem, first.problem)
        origin = f"{NEAR} ({shown}; {far:.1f} powers of two away)"
        return Advice(first.knobs, origin, rivals, first.problem.sizes)

    def learn(self, entry: Entry) -> None:
        """Keep what a run found out."""
        self._said.clear()
        if self.database is not None:
            self.database.record(entry)
            self._known = True
        else:
            self.given = [*self.given, entry]

    def notes(self) -> list[str]:
        """What a user should know: entries that are for something else, and why."""
        counts: dict[str, int] = {}
        for other in self._stale.values():
            counts[other] = counts.get(other, 0) + 1
        said = [
            f"{count} {'entry' if count == 1 else 'entries'} of wisdom "
            f"{'is' if count == 1 else 'are'} for {other}, and not used"
            for other, count in sorted(counts.items())
        ]
        said += self.refused
        return [*said, *(self.database.problems if self.database is not None else ())]

    def _usable(
        self,
        problem: Problem,
        recorded: Callable[[Database], list[Entry]],
        concerns: Callable[[Problem, Problem], bool],
    ) -> list[Entry]:
        """Entries that are for this device and these versions; a file's go first.

        Args:
            problem: What they are wanted for.
            recorded: Those of the database.
            concerns: Whether an entry's problem is one of them.
        """
        found = [entry for entry in self.given if concerns(entry.problem, problem)]
        if self.database is not None:
            found += recorded(self.database)
        now = current_versions(problem.target)
        return [entry for entry in found if self._fits(entry, problem, now)]

    def _fits(self, entry: Entry, problem: Problem, now: Mapping[str, str]) -> bool:
        """Whether an entry may be used; what it is for otherwise is remembered."""
        device = entry.problem.device
        other = stale(entry.versions, now)
        if problem.device not in (device, ANY_DEVICE):
            other = device
        if other:
            self._stale[entry.key] = other
        return not other


def _same_problem(one: Problem, other: Problem) -> bool:
    return one == other


def _same_family(one: Problem, other: Problem) -> bool:
    return one.template == other.template and one.family == other.family


def _origin(entry: Entry, problem: Problem) -> str:
    """Where the knobs of an entry for these sizes come from."""
    if entry.note == TRIED:
        return TRIED
    threads = entry.problem.threads
    return TUNED if threads == problem.threads else f"{TUNED} for {threads} threads"


def tried(
    problem: Problem, knobs: Mapping[str, Mapping[str, object]], speedup: float, micros: float
) -> Entry:
    """What a quick comparison at these sizes showed, as an entry."""
    versions = current_versions(problem.target)
    entry = Entry(problem, knobs, speedup, micros, predicted=False, versions=versions)
    return replace(entry, note=TRIED)
