"""What came of tuning, for people and for programs: a table, a plot, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from tcfuse.errors import OptionError
from tcfuse.store import write_file
from tcfuse.tuning.expected import Expected
from tcfuse.tuning.plot import convergence
from tcfuse.tuning.tune import failure
from tcfuse.tuning.tuned import KNOWN, Tuned

FORMAT = 1
HEADER = ("kernel", "calls", "default us", "tuned us", "gain", "tried", "failed", "knobs")
SUFFIXES = (".html", ".svg", ".json")


@dataclass(frozen=True, slots=True)
class TuningReport:
    """What came of one run.

    Attributes:
        subject: What was tuned, for people.
        kernels: What came of each kernel.
        expected: What it is expected to do for the model.
        search: How candidates were chosen.
        device: What they ran on.
    """

    subject: str
    kernels: Sequence[Tuned]
    expected: Expected | None = None
    search: dict[str, Any] = field(default_factory=dict)
    device: str = ""

    def write(self, path: Path) -> None:
        """Write a page, a plot or JSON, as the name says.

        Raises:
            OptionError: It says something else.
            InputError: The file cannot be written.
        """
        made = {".html": self.to_html, ".svg": self.to_svg, ".json": self.to_json}
        check_suffix(path)
        write_file(path, made[path.suffix]().encode())

    def rows(self) -> Iterable[tuple[str, ...]]:
        """The table, the dearest kernel first."""
        return map(_row, sorted(self.kernels, key=lambda k: -k.total_us))

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        word = "predicted " if self.predicted else ""
        return tuple(word + name if name.endswith(("us", "gain")) else name for name in HEADER)

    def summary(self) -> list[str]:
        """What there is to say below the table, a line each."""
        before = sum(k.total_us for k in self.kernels)
        after = sum(k.total_us / k.gain for k in self.kernels)
        lines = [f"{k.task.subject.name}: {k.detail}" for k in self.kernels if k.detail]
        word = "predicted " if self.predicted else ""
        if before:
            lines.append(
                f"kernels take {word}{after:.0f} us of a call instead of {before:.0f}: "
                f"{before / after:.2f} times the speed"
            )
        if self.expected is not None:
            lines.append(
                f"the model is expected to take {self.expected.after_us:.0f} us instead of "
                f"{self.expected.before_us:.0f}: {self.expected.gain:.2f} times the speed"
            )
        return lines

    @property
    def predicted(self) -> bool:
        """Whether the numbers come of a model, not of a clock."""
        return any(k.entry is not None and k.entry.predicted for k in self.kernels)

    def to_json(self) -> str:
        """Everything."""
        record = {
            "format": FORMAT,
            "subject": self.subject,
            "device": self.device,
            "search": self.search,
            "predicted": self.predicted,
            "expected": self.expected
            and {"before_us": self.expected.before_us, "after_us": self.expected.after_us},
            "kernels": [_record(k) for k in self.kernels],
        }
        return json.dumps(record, indent=1) + "\n"

    def to_svg(self) -> str:
        """How the searches converged."""
        return convergence([(k.task.subject.name, k.convergence) for k in self._searched])

    def to_html(self) -> str:
        """The table, the plot and the failures on a page of its own."""
        cells = "\n".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows()
        )
        heads = "".join(f"<th>{escape(title)}</th>" for title in self.header)
        told = "".join(f"<p>{escape(line)}</p>\n" for line in self.summary())
        failures = "\n".join(
            f"<li>{escape(k.task.subject.name)}: {escape(line)}</li>"
            for k in self.kernels
            for line in failures_of(k)
        )
        title = escape(f"{self.subject}, tuned")
        return (
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
            f"<style>{_STYLE}</style>\n<h1>{title}</h1>\n<p>{escape(self.device)}</p>\n"
            f"<table><tr>{heads}</tr>\n{cells}\n</table>\n{told}{self.to_svg()}"
            + (
                f"<h2>What could not be used</h2>\n<ul>\n{failures}\n</ul>\n"
                if failures
                else ""
            )
            + "</html>\n"
        )

    @property
    def _searched(self) -> list[Tuned]:
        found = [k for k in self.kernels if k.ended != KNOWN and len(k.trials) > 1]
        return sorted(found, key=lambda k: -k.total_us)


_STYLE = (
    "body{font-family:sans-serif;margin:2em}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}"
)


def check_suffix(path: Path) -> None:
    """Raise ``OptionError`` unless a report can be written there."""
    if path.suffix not in SUFFIXES:
        raise OptionError(f"{path}: a report ends in {', '.join(SUFFIXES)}")


def failures_of(tuned: Tuned) -> list[str]:
    """A line for each candidate that could not be used."""
    return [failure(trial.candidate, trial.outcome) for trial in tuned.failures]


def knobs_of(tuned: Tuned) -> str:
    """The knobs that differ from the defaults, or why there are none."""
    if tuned.entry is None:
        return tuned.ended
    names = [
        f"{'cuda_' if kind == 'cuda' else ''}{name}={_shown(value)}"
        for kind, knobs in tuned.entry.knobs.items()
        for name, value in sorted(knobs.items())
    ]
    text = " ".join(names) or "default"
    return f"{text} ({tuned.ended})" if tuned.ended == KNOWN else text


def _row(tuned: Tuned) -> tuple[str, ...]:
    entry, default, best = tuned.entry, tuned.default_us, tuned.tuned_us
    return (
        tuned.task.subject.name,
        str(tuned.task.calls),
        "" if default is None else f"{default:.1f}",
        "" if entry is None or best is None else f"{best:.1f}",
        "" if entry is None else f"{tuned.gain:.2f}",
        str(len(tuned.trials)),
        str(len(tuned.failures)),
        knobs_of(tuned),
    )


def _record(tuned: Tuned) -> dict[str, Any]:
    return {
        "name": tuned.task.subject.name,
        "operators": list(tuned.task.names),
        "calls": tuned.task.calls,
        "default_us": tuned.default_us,
        "tuned_us": tuned.tuned_us,
        "gain": tuned.gain,
        "spread": tuned.spread,
        "tried": len(tuned.trials),
        "failed": dict(tuned.failed),
        "failures": failures_of(tuned),
        "knobs": tuned.entry.knobs if tuned.entry is not None else None,
        "ended": tuned.ended,
        "detail": tuned.detail,
        "convergence": tuned.convergence,
    }


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value).lower()
