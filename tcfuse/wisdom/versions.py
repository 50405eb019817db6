"""What makes an entry of wisdom stale: other versions of tcfuse and of the compiler.

An edited source of the same version does not: kernels are compiled, proved and verified anew
whatever wisdom says, so the worst that old knobs do is to be slow.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Mapping

from tcfuse.debug import current
from tcfuse.errors import ToolchainError
from tcfuse.targets.compilers import find_compiler


def current_versions(target: str = "cpu") -> dict[str, str]:
    """The versions that entries must have to be used here: of tcfuse and of the compiler.

    A machine without the compiler has the version ``none``.
    """
    return {"tcfuse": _version("tcfuse"), "compiler": _compiler(target, current().cxx)}


@functools.cache
def _compiler(target: str, wanted: str | None) -> str:
    if target == "cuda":
        return f"nvrtc {_version('nvidia-cuda-nvrtc')}"
    try:
        return str(find_compiler(wanted))
    except ToolchainError:
        return "none"


@functools.cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def stale(versions: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What an entry of ``versions`` is for, where that is not ``now``; empty when it is."""
    for name, version in sorted(now.items(), reverse=True):
        found = versions.get(name, "none")
        if found != version:
            return found if name == "compiler" else f"{name} {found}"
    return ""
