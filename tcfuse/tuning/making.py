"""Candidates of one subject to texts, and texts to libraries, each text once.

Whatever goes wrong is the outcome of that candidate.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from tcfuse.errors import TcfuseError, ToolchainError
from tcfuse.targets.base import KernelSource
from tcfuse.tuning.building import Building, Compile, digest_of
from tcfuse.tuning.candidate import Candidate, Outcome, Subject
from tcfuse.tuning.messages import Contender

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Built:
    """A candidate on its way.

    Attributes:
        source: The digest of its text; empty where it has none.
        contender: Its library; ``None`` where that was not wanted.
        failed: Why it cannot be measured.
        seconds: What it took.
    """

    source: str = ""
    contender: Contender | None = None
    failed: Outcome | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class Making:
    """The candidates of one subject; several threads may ask.

    Attributes:
        subject: What they are for.
        compile: Makes the text of one.
        folder: Where libraries go.
        contenders: Those that are built, by the digests of their texts.
    """

    subject: Subject
    compile: Compile
    folder: Path
    contenders: dict[str, Contender] = field(default_factory=dict)
    _texts: dict[Candidate, tuple[KernelSource, str]] = field(default_factory=dict)

    def text(self, candidate: Candidate) -> Built:
        """What its text is; the text is kept until there is a library."""

        def made() -> Built:
            self._texts[candidate] = self._text(candidate)
            return Built(self._texts[candidate][1])

        return self._tried(made)

    def library(self, candidate: Candidate, known: Collection[str] = ()) -> Built:
        """Its library, unless its text is among the ``known``."""

        def made() -> Built:
            kept = self._texts.pop(candidate) if candidate in self._texts else None
            kernel, source = kept or self._text(candidate)
            if source in known:
                return Built(source)
            if source not in self.contenders:
                building = Building(self.folder)
                contender = building.build(kernel, self.subject.numerics, source)
                self.contenders.setdefault(source, contender)
            return Built(source, self.contenders[source])

        return self._tried(made)

    def _text(self, candidate: Candidate) -> tuple[KernelSource, str]:
        kernel = self.compile(self.subject, candidate)
        assert isinstance(kernel, KernelSource), "this machine measures kernels for CPUs"
        return kernel, digest_of(kernel)

    def _tried(self, made: Callable[[], Built]) -> Built:
        begin = time.perf_counter()
        built = self._guarded(made)
        return replace(built, seconds=time.perf_counter() - begin)

    def _guarded(self, made: Callable[[], Built]) -> Built:
        try:
            return made()
        except ToolchainError as error:
            return Built(failed=Outcome("refused", detail=f"C++ compiler: {_line(error)}"))
        except TcfuseError as error:
            return Built(failed=Outcome("refused", detail=_line(error)))
        except Exception as error:  # the same border as where kernels are compiled
            log.warning("internal error in %s", self.subject.name, exc_info=True)
            text = f"internal error: {type(error).__name__}: {_line(error)}"
            return Built(failed=Outcome("refused", detail=text))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
