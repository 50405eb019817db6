"""The text every kernel starts with."""

from __future__ import annotations

from functools import cache
from importlib import resources

from tcfuse.codegen import mathlib


@cache
def kernel_prelude() -> str:
    """The math library, then what kernels need beside it."""
    folder = resources.files("tcfuse.codegen")
    headers = (folder.joinpath(name) for name in ("kernel.hpp", "lanes.hpp"))
    return mathlib.prelude() + "".join(h.read_text(encoding="utf-8") for h in headers)
