"""Everything that can be asked for, by name: ``micro/gelu_erf``, ``limits/copy``."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from scripts.gpu.outcome import Outcome
from scripts.gpu.workbench import Settings, Workbench


@dataclass(frozen=True)
class Part:
    """Items of one kind.

    Attributes:
        module: Of ``scripts.gpu``, with ``names(settings)`` and ``run(name, bench)``; it is
            imported when it is needed, which takes seconds.
        limit_s: After how long an item counts as hanging.
        usual_s: How long an item takes, about.
    """

    module: str
    limit_s: int = 120
    usual_s: int = 5

    def load(self) -> Any:
        """The module."""
        return importlib.import_module(f"scripts.gpu.{self.module}")


PARTS: dict[str, Part] = {
    "limits": Part("limits", usual_s=30),
    "papers": Part("papers"),
    "cases": Part("cases"),
    "sanitizer": Part("sanitizer", 330, 120),
    "micro": Part("micro", 300, 60),
    "models": Part("models", 440, 200),
}


def item_names(part: str, settings: Settings | None = None) -> list[str]:
    """The items of a part, with its name before theirs."""
    names: list[str] = PARTS[part].load().names(settings or Settings())
    return [f"{part}/{name}" for name in names]


def prepare(name: str) -> None:
    """Import what an item needs."""
    PARTS[name.partition("/")[0]].load()


def run_item(name: str, bench: Workbench) -> Outcome:
    """Do what an item asks for."""
    part, _, rest = name.partition("/")
    outcome: Outcome = PARTS[part].load().run(rest, bench)
    return outcome
