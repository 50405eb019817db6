"""Which compiled form of a kernel a device takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from tcfuse.errors import DeviceError


class Image(Protocol):
    """A kernel for one architecture, as ``targets.nvrtc`` makes it."""

    @property
    def arch(self) -> str:
        """``sm_90``; of PTX the oldest that it serves."""

    @property
    def kind(self) -> str:
        """``cubin`` or ``ptx``."""

    @property
    def data(self) -> bytes:
        """What the driver loads."""


I = TypeVar("I", bound=Image)  # noqa: E741


def choose(images: Sequence[I], arch: str) -> I:
    """The image that a device of ``arch`` runs best.

    A cubin runs on its own architecture and on later ones of the same generation (major
    number); PTX on its own and on all later ones.

    Source: CUDA C++ Programming Guide, binary and PTX compatibility.

    Raises:
        DeviceError: None can run there.
    """
    major, minor = _number(arch)

    def rank(image: I) -> tuple[int, tuple[int, int]]:
        return int(image.kind == "cubin"), _number(image.arch)

    def runs(image: I) -> bool:
        of = _number(image.arch)
        if image.arch[-1] == "a":  # for that architecture alone
            return of == (major, minor)
        return of <= (major, minor) and (image.kind == "ptx" or of[0] == major)

    found = [image for image in images if runs(image)]
    if not found:
        there = ", ".join(f"{image.arch} ({image.kind})" for image in images) or "none"
        raise DeviceError(f"the kernel has no image for {arch}; there are {there}")
    return max(found, key=rank)


def _number(arch: str) -> tuple[int, int]:
    """``sm_103a`` is (10, 3)."""
    match = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)[af]?", arch)
    assert match, f"{arch!r} is no architecture"
    return int(match[1]), int(match[2])
