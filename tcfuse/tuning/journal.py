"""The journal of one search: what came of every candidate, on disk as soon as it is known.

A search that was interrupted or killed goes on where it was: what the journal knows is told to
the sampler without being measured again, and the time that was used counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from tcfuse.tuning.candidate import Candidate, Outcome

_ABOUT = ""  # stands for a candidate in the rows that say something about the search itself


class Trials(Protocol):
    """Where journals are kept: ``wisdom.database.Database``."""

    def record_trial(self, run: str, candidate: str, outcome: str) -> bool:
        """Append a row to the journal of a run; whether it is on disk."""
        ...

    def trials(self, run: str) -> list[tuple[str, str]]:
        """The rows of a run, in the order in which they were recorded."""
        ...

    def forget_trials(self, run: str) -> bool:
        """Remove the journal of a run; whether that is on disk."""
        ...


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate that was tried.

    Attributes:
        at: Seconds since the search began.
    """

    candidate: Candidate
    outcome: Outcome
    at: float


class Journal:
    """What is known of one search.

    Args:
        rows: Where it is kept.
        run: Names the search: everything that determines its candidates.

    Attributes:
        seeds: The candidates it began with; ``None`` before it has begun.
        ended: Why it ended; empty while it has not.
        trials: What was tried, by the candidates' texts.
    """

    def __init__(self, rows: Trials, run: str) -> None:
        self._rows, self.run = rows, run
        self.seeds: tuple[Candidate, ...] | None = None
        self.ended = ""
        self.trials: dict[str, Trial] = {}
        for candidate, outcome in rows.trials(run):
            self._read(candidate, json.loads(outcome))

    @property
    def used(self) -> float:
        """Seconds that the search has taken so far."""
        return max((trial.at for trial in self.trials.values()), default=0.0)

    def begin(self, seeds: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The candidates that the search began with: those of its first run."""
        if self.seeds is None:
            self.seeds = tuple(seeds)
            self._write(_ABOUT, {"seeds": [seed.to_record() for seed in seeds]})
        if self.ended:
            self.ended = ""
            self._write(_ABOUT, {"ended": ""})
        return self.seeds

    def known(self, candidate: Candidate) -> Outcome | None:
        """What came of a candidate, if it was tried."""
        trial = self.trials.get(text_of(candidate))
        return None if trial is None else trial.outcome

    def note(self, candidate: Candidate, outcome: Outcome, at: float) -> None:
        """Keep what came of a candidate."""
        text = text_of(candidate)
        self.trials[text] = Trial(candidate, outcome, at)
        self._write(text, {**asdict(outcome), "at": at})

    def end(self, why: str) -> None:
        """Keep that the search has ended."""
        self.ended = why
        self._write(_ABOUT, {"ended": why})

    def forget(self) -> None:
        """Begin anew."""
        self._rows.forget_trials(self.run)
        self.seeds, self.ended, self.trials = None, "", {}

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials.values())

    def _write(self, candidate: str, record: dict[str, Any]) -> None:
        self._rows.record_trial(self.run, candidate, json.dumps(record))

    def _read(self, text: str, record: dict[str, Any]) -> None:
        if text != _ABOUT:
            candidate, at = Candidate.of_record(json.loads(text)), record.pop("at")
            self.trials[text] = Trial(candidate, Outcome(**record), at)
        elif "seeds" in record:
            self.seeds = tuple(map(Candidate.of_record, record["seeds"]))
        else:
            self.ended = record["ended"]


def text_of(candidate: Candidate) -> str:
    """The candidate as text; equal ones have equal texts."""
    return json.dumps(candidate.to_record(), sort_keys=True)
