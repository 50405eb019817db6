"""What a region asks of wisdom, and knobs of near sizes tried before they are used.

Where the same kernel was tuned at these sizes its knobs are taken.  Where it was tuned at
others, the three nearest and the defaults run against each other for a moment, and what wins is
kept as wisdom about these sizes; a run that measures nothing takes the nearest.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import onnx_ir as ir

from tcfuse.ahead import Ahead, contract_of
from tcfuse.cuda_options import CudaOptions
from tcfuse.errors import ToolchainError, UnsupportedError
from tcfuse.interface import Interface
from tcfuse.kernels import Compiled, compile_cached, compile_targets
from tcfuse.mapping_options import MappingOptions
from tcfuse.options import OptimizeOptions
from tcfuse.ort.race import race
from tcfuse.ort.sizes import known_sizes
from tcfuse.store import Store, key_of
from tcfuse.targets.base import KernelSource
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.compose import Composed
from tcfuse.wisdom.advice import DEFAULTS, Advice, Advisor, tried
from tcfuse.wisdom.bounds import default_path
from tcfuse.wisdom.devices import device_of
from tcfuse.wisdom.exchange import Collection
from tcfuse.wisdom.problem import Layer, Problem
from tcfuse.wisdom.verdict import Verdicts

log = logging.getLogger(__name__)

SECONDS = 60.0  # that trying knobs of near sizes may take in one run
WINS = 1.03  # how much faster other knobs must be than the defaults


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """A region as it is put to wisdom.

    Attributes:
        layer: What it computes.
        interface: Its signature; ``None`` where no size of it has a name.
        inputs: The values of the model that its inputs are.
    """

    layer: Layer
    interface: Interface | None
    inputs: tuple[ir.Value, ...]

    def sizes(self, named: Mapping[str, int]) -> dict[str, int]:
        """The value of its size names in measurements, by those of the model's."""
        if self.interface is None:
            return {}
        shapes = [
            [d if isinstance(d, int) else d.value for d in value.shape or ()]
            for value in self.inputs
        ]
        return known_sizes(self.interface, shapes, named)


@dataclass(slots=True)
class Consultation:
    """Wisdom in one run.

    Attributes:
        advisor: What is asked.
        options: Of the run.
        named: Value of the model's size names in measurements.
        tries: Whether knobs of near sizes may be run.
        spent: Seconds that trying took so far.
        verdicts: What was decided about whole models.
    """

    advisor: Advisor
    options: OptimizeOptions
    tries: bool = False
    named: Mapping[str, int] = field(default_factory=dict)
    spent: float = 0.0
    verdicts: Verdicts = field(default_factory=Verdicts)

    def notes(self) -> list[str]:
        """What a user should know about the wisdom."""
        return [*self.advisor.notes(), *self.verdicts.notes()]

    @property
    def asks(self) -> bool:
        """Whether there is something to ask; who sets a knob has decided."""
        options = self.options
        usual = MappingOptions(numerics=options.mapping.numerics)
        decided = options.mapping != usual or options.cuda != CudaOptions()
        return self.advisor.knows and not decided

    def problems(self, posed: Posed) -> dict[str, Problem]:
        """What is asked about a region, for each target."""
        sizes, numerics = posed.sizes(self.named), self.options.numerics
        return {
            target: posed.layer.at(sizes, target, device_of(target), numerics)
            for target in self.options.targets
        }

    def advice(self, posed: Posed) -> dict[str, Advice]:
        """What wisdom says to it."""
        asked = {t: self.advisor.advise(p) for t, p in self.problems(posed).items()}
        return {target: advice for target, advice in asked.items() if advice.origin}

    def asked(self, posed: Posed) -> str:
        """Names what wisdom knows of a region; empty where that is nothing.

        A run that may try what is near decides otherwise than one that may not.
        """
        found = self.advice(posed) if self.asks else {}
        known = ((t, a.question, bool(a.rivals) and self.tries) for t, a in found.items())
        return key_of(*sorted(known)) if found else ""

    def compiled(
        self,
        composed: Composed,
        checked: CheckedDef,
        hint: str,
        store: Store,
        ahead: Ahead | None,
    ) -> Compiled:
        """The kernels of a region, with the knobs that wisdom has for it.

        Args:
            composed: The region.
            checked: Its definition.
            hint: The kernels' name.
            store: The cache.
            ahead: Is told to compile them; what it does already, a measurement waits for.

        Raises:
            UnsupportedError: There is none.
        """
        posed = Posed(Layer.of(checked), composed.interface, composed.inputs)
        kernel = Unfinished(checked, composed.interface, hint)
        advice = self.decided(posed, kernel, store, ahead)
        made = compile_targets(*kernel, self.options, store, advice)
        if ahead is not None:
            ahead.compile(made)
        asked = self.asked(posed)
        return Compiled(made, composed.inputs, composed.outputs, posed.layer, asked)

    def decided(
        self, posed: Posed, kernel: Unfinished, store: Store, ahead: Ahead | None
    ) -> dict[str, Advice]:
        """The knobs that a region gets, tried at its sizes where that is needed.

        Args:
            posed: The region.
            kernel: Its definition.
            store: The cache.
            ahead: Compilations under way, which a measurement waits for.
        """
        found = self.advice(posed) if self.asks else {}
        near = found.get("cpu")
        if near is None or not near.rivals or not self.tries:
            return found
        problem = self.problems(posed)["cpu"]
        if self.spent < SECONDS:
            start = time.perf_counter()
            if ahead is not None:
                ahead.wait()
            best = self._tried(problem, near, kernel, posed.sizes(self.named), store)
            self.spent += time.perf_counter() - start
            if best is not None:
                return {**found, "cpu": best}
        found["cpu"] = replace(near, rivals=()) if _close(near, problem) else DEFAULTS
        return {target: advice for target, advice in found.items() if advice.origin}

    def _tried(
        self,
        problem: Problem,
        near: Advice,
        kernel: Unfinished,
        sizes: Mapping[str, int],
        store: Store,
    ) -> Advice | None:
        """The fastest of the defaults and the knobs of near sizes; ``None``: nothing ran."""
        knobs: dict[str, Mapping[str, Mapping[str, object]]] = {}
        made: list[KernelSource] = []
        for rival in (DEFAULTS, *(Advice(r, near.origin) for r in near.rivals)):
            source = kernel.compiled(rival.mapping(self.options.mapping), store)
            if source is not None and source.name not in knobs:
                knobs[source.name] = rival.knobs
                made.append(source)
        try:
            ratios = race(made, sizes, contract_of(self.options)) if made else None
        except ToolchainError as error:
            log.info("knobs of near sizes cannot be tried: %s", error)
            return None
        if ratios is None:
            return None
        best = max(range(len(made)), key=lambda k: ratios[k].value)
        if ratios[best].value < WINS:
            best = 0
        ratio, chosen = ratios[best], knobs[made[best].name]
        entry = tried(problem, chosen, max(ratio.value, 1e-6), max(ratio.after_us, 1e-3))
        self.advisor.learn(entry)
        return self.advisor.advise(problem)


class Unfinished(NamedTuple):
    """A definition that kernels with several knobs are made of."""

    checked: CheckedDef
    interface: Interface
    hint: str

    def compiled(self, options: MappingOptions, store: Store) -> KernelSource | None:
        """Its kernel with those knobs; ``None`` where there is none."""
        try:
            return compile_cached(
                self.checked, self.interface, self.hint, options, store
            ).source
        except (UnsupportedError, RuntimeError) as error:
            log.info("knobs of near sizes do not suit a kernel: %s", error)
            return None


def consultation(options: OptimizeOptions, *, tries: bool) -> Consultation:
    """The wisdom of a run: a file that was named, then the cache's.

    Args:
        options: Of the run.
        tries: Whether something may be run, where the options allow it.

    Raises:
        InputError: The file is no wisdom.
    """
    if not options.use_wisdom:
        return Consultation(Advisor(), options, verdicts=Verdicts(imported=False))
    given = Collection.read(Path(options.wisdom)) if options.wisdom else Collection()
    if not given.entries and not default_path().exists():
        advisor = Advisor(refused=given.refused)
        return Consultation(advisor, options, verdicts=Verdicts(given.verdicts))
    from tcfuse.wisdom.database import Database  # SQLite takes its time

    advisor = Advisor(given.best_first, Database.default(), given.refused)
    asked = tries and options.gate
    return Consultation(advisor, options, tries=asked, verdicts=Verdicts(given.verdicts))


def _close(near: Advice, problem: Problem) -> bool:
    """Whether the nearest sizes are of the same class: their knobs are used untried then."""
    return replace(problem, sizes=near.sizes).size_class == problem.size_class
