"""The debug switches of one run: what is shown and checked, never what code is produced.

This is the only module that reads the environment.

| variable | meaning |
| --- | --- |
| ``TCFUSE_DUMP=DIR`` | write each stage's artifact to ``DIR/NN-name.stage`` |
| ``TCFUSE_DUMP_ONLY=tc,mapped`` | only these stages |
| ``TCFUSE_VERIFY=2`` | run every kernel, with ``--no-verify`` too (its proof always runs) |
| ``TCFUSE_CACHE_DIR=DIR`` | where kernels, libraries and measurements are kept |
| ``TCFUSE_CXX=PROGRAM`` | the C++ compiler to use instead of the one found |
| ``TCFUSE_LOG=debug`` | print the log of that level and above on standard error |
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tcfuse.errors import OptionError

LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Debug:
    """One run's debug switches; the default shows nothing and checks nothing."""

    dump_dir: Path | None = None
    dump_only: frozenset[str] = field(default_factory=frozenset)
    verify: int = 0
    cache: Path | None = None
    cxx: str | None = None
    log: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Debug:
        """The switches that ``TCFUSE_*`` variables ask for.

        Raises:
            OptionError: A variable has a value that means nothing.
        """
        verify = environment.get("TCFUSE_VERIFY", "") or "0"
        if verify not in ("0", "1", "2"):
            raise OptionError(f"TCFUSE_VERIFY is {verify!r}; it may be 0, 1 or 2")
        log = environment.get("TCFUSE_LOG", "").lower()
        if log and log not in LEVELS:
            raise OptionError(f"TCFUSE_LOG is {log!r}; levels are {', '.join(LEVELS)}")
        only = environment.get("TCFUSE_DUMP_ONLY", "").replace(" ", "").split(",")
        return cls(
            dump_dir=_path(environment.get("TCFUSE_DUMP")),
            dump_only=frozenset(filter(None, only)),
            verify=int(verify),
            cache=_path(environment.get("TCFUSE_CACHE_DIR")),
            cxx=environment.get("TCFUSE_CXX") or None,
            log=log or None,
        )

    def dump(self, step: int, stage: str, name: str, artifact: object) -> None:
        """Write ``NN-name.stage``, whose text the stage's own parser reads back."""
        if self.dump_dir is None or (self.dump_only and stage not in self.dump_only):
            return
        self.dump_dir.mkdir(parents=True, exist_ok=True)
        path = self.dump_dir / f"{step:02d}-{name}.{stage}"
        path.write_text(f"{artifact}\n", encoding="utf-8")


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser() if text else None


@functools.lru_cache(maxsize=1)
def current() -> Debug:
    """The switches of this process; read once (``current.cache_clear()`` reads again)."""
    return Debug.from_environment(os.environ)


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """What a program we start finds in its environment: ours, and ``more``."""
    return {**os.environ, **more}


def cache_dir() -> Path:
    """The folder that outlives runs: ``TCFUSE_CACHE_DIR``, else the user's cache folder."""
    if (chosen := current().cache) is not None:
        return chosen
    import platformdirs  # only here: most commands never need it

    return Path(platformdirs.user_cache_dir("tcfuse", appauthor=False))
