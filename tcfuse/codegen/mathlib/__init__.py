"""The math and vector library generated CPU kernels include: freestanding C++17 templates."""

from __future__ import annotations

from functools import cache
from importlib import resources

HEADERS = (
    "types",
    "compare",
    "convert",
    "memory",
    "integer",
    "reduce",
    "rounding",
    "exact",
    "exponential",
    "logarithm",
    "power",
    "trigonometry",
    "inverse",
    "elementary",
    "error",
    "gamma",
    "bessel",
)


@cache
def prelude() -> str:
    """The text of every header, each after those it uses."""
    folder = resources.files(__name__)
    return "\n".join(
        folder.joinpath(f"{name}.hpp").read_text(encoding="utf-8") for name in HEADERS
    )
