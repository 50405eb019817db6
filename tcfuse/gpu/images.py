"""Which compiled form of a kernel a device takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from tcfuse.errors import DeviceError
from tcfuse.targets.cuda_archs import arch_number


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
    number = arch_number(arch)

    def rank(image: I) -> tuple[bool, int]:
        return image.kind == "cubin", arch_number(image.arch)

    def runs(image: I) -> bool:
        made_for = arch_number(image.arch)
        return made_for <= number and (image.kind == "ptx" or made_for // 10 == number // 10)

    found = [image for image in images if runs(image)]
    if not found:
        there = ", ".join(f"{image.arch} ({image.kind})" for image in images) or "none"
        raise DeviceError(f"the kernel has no image for {arch}; there are {there}")
    return max(found, key=rank)
