"""How good the cost model is: what was predicted of every kernel beside what was measured.

``python -m scripts.cost_model MODEL [MODEL ...]`` optimizes each model with the gate and prints
a row for each kernel that was timed alone: microseconds of ONNX Runtime's kernels and of ours,
predicted and measured, and what became of it.  Below stand the kernels that were predicted to
win and lost, and how the predictions compare over all models.  A manifest (``OUT.tcfuse.json``)
of an earlier run may stand for its model.  ``--draw FILE.svg`` draws three plots, both axes
logarithmic, in which perfect predictions lie on the diagonal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import tcfuse
from scripts.panels import Panel, drawn
from tcfuse.commands.optimize import describe, distinct
from tcfuse.commands.progress import print_table
from tcfuse.errors import TcfuseError
from tcfuse.ort.manifest import RegionReport, Report
from tcfuse.planning import accuracy

QUANTITIES = {"ONNX Runtime": "before_us", "ours": "after_us", "speedup": "speedup"}
HEADER = (
    *("model", "operators", "ONNX Runtime us", "measured", "ours us", "measured"),
    *("speedup", "measured", "outcome"),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One kernel that was tried on one model."""

    model: str
    region: RegionReport

    @property
    def outcome(self) -> str:
        """Whether it is in the model, or why not."""
        return "kept" if self.region.kept else self.region.reason

    def pair(self, key: str) -> tuple[float, float]:
        """Predicted and measured."""
        return self.region.predicted[key], self.region.measured[key]

    def row(self) -> tuple[str, ...]:
        """What the table says."""
        numbers = [number for key in QUANTITIES.values() for number in self.pair(key)]
        texts = [f"{number:.1f}" for number in numbers[:4]]
        texts += [f"{number:.2f}" for number in numbers[4:]]
        return self.model, describe(self.region.nodes), *texts, self.outcome


def trials(paths: Iterable[Path]) -> Iterator[Trial]:
    """The kernels that were timed for each model, or that a manifest tells of."""
    for path in paths:
        if path.suffix == ".json":
            report = Report.from_json(path.read_text(encoding="utf-8"))
        else:
            report = tcfuse.optimize(path).report
        name = path.name.partition(".")[0]
        yield from (Trial(name, region) for region in distinct(report))


def summaries(found: Sequence[Trial]) -> Iterator[str]:
    """How each quantity was predicted, and how often the outcome was."""
    for name, key in QUANTITIES.items():
        pairs = ((trial.region.predicted, trial.region.measured) for trial in found)
        if (compared := accuracy(pairs, key)) is not None:
            yield (
                f"{name}: predicted {compared.ratio:.2f} of what was measured, "
                f"half of them within a factor of {compared.factor:.2f}, "
                f"rank correlation {compared.rank:.2f}"
            )
    n_lost = sum(not trial.region.kept for trial in found)
    yield f"{len(found)} kernels were timed, {n_lost} of them in vain"


def panels(found: Sequence[Trial]) -> list[Panel]:
    """One plot for each quantity: measured on the x axis, predicted on the y axis."""
    made = []
    for name, key in QUANTITIES.items():
        both = [(*reversed(trial.pair(key)), trial.region.kept) for trial in found]
        ends = [f(n for a, b, _ in both for n in (a, b)) for f in (min, max)]
        lines = {
            "as predicted": [(end, end) for end in ends],
            "kept": [(a, b) for a, b, kept in both if kept],
            "given back": [(a, b) for a, b, kept in both if not kept],
        }
        made.append(Panel(name, lines, dots=("kept", "given back")))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and draw; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--draw", type=Path, metavar="FILE.svg", help="where the plots go")
    parser.add_argument("--quiet", action="store_true", help="print no row for each kernel")
    given = parser.parse_args(arguments)
    try:
        found = list(trials(given.models))
    except (TcfuseError, OSError) as error:
        parser.error(str(error))
    if not found:
        parser.error("no kernel was timed")
    if not given.quiet:
        print_table(HEADER, (trial.row() for trial in found))
    for line in summaries(found):
        sys.stdout.write(f"{line}\n")
    if given.draw is not None:
        text = drawn(panels(found), "measured", "predicted")
        given.draw.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
