"""Everything that can be asked for, by name: ``micro/gelu_erf``, ``limits/copy``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scripts.gpu import cases, limits, micro, models, sanitizer
from scripts.gpu.outcome import Outcome
from scripts.gpu.workbench import Settings, Workbench


@dataclass(frozen=True)
class Part:
    """Items of one kind.

    Attributes:
        about: What it does, for people.
        names: Its items.
        run: What an item does.
        limit_s: After how long an item counts as hanging.
        usual_s: How long an item takes, about.
    """

    about: str
    names: Callable[[Settings], list[str]]
    run: Callable[[str, Workbench], Outcome]
    limit_s: int = 120
    usual_s: int = 5


def _limit(name: str, bench: Workbench) -> Outcome:
    return {"copy": limits.measure_copy, "products": limits.measure_products}[name](bench)


PARTS: dict[str, Part] = {
    "limits": Part(
        "measures copy bandwidth and the rates of matrix products",
        lambda _: ["copy", "products"],
        _limit,
        usual_s=30,
    ),
    "papers": Part(
        "checks the kernels of the papers against float64",
        lambda _: list(cases.papers()),
        cases.check_paper,
    ),
    "cases": Part(
        "checks ONNX's cases for single operators against float64",
        lambda _: list(cases.operator_cases()),
        cases.check_operator,
    ),
    "sanitizer": Part(
        "runs some kernels under compute-sanitizer",
        lambda _: list(sanitizer.TOOLS),
        sanitizer.run_tool,
        sanitizer.LIMIT_S + 30,
        120,
    ),
    "micro": Part(
        "times the small graphs of SHARED/bench against other ways to compute them",
        lambda settings: micro.names(settings.shared),
        micro.measure_micro,
        300,
        60,
    ),
    "models": Part(
        "times whole models in ONNX Runtime, before and after",
        lambda settings: models.names(settings.models),
        models.measure_model,
        models.LIMIT_S + 40,
        200,
    ),
}


def item_names(part: str, settings: Settings | None = None) -> list[str]:
    """The items of a part, with its name before theirs."""
    return [f"{part}/{name}" for name in PARTS[part].names(settings or Settings())]


def run_item(name: str, bench: Workbench) -> Outcome:
    """Do what an item asks for."""
    part, _, rest = name.partition("/")
    return PARTS[part].run(rest, bench)
