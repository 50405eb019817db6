"""The library that generated CUDA kernels include: the CPU's mathematics, packs and teams.

One source for both: scalars are the math library's own templates, packs of elements apply them
lane by lane, and what the hardware does in one instruction has a function of its own that is
preferred.  No header of NVIDIA's is included, so NVRTC alone compiles it, and a C++ compiler
that is given CUDA's words does too.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from tcfuse.codegen import mathlib

NAME = "tcf_device.hpp"  # as kernels include it

# Those of the math library that know of registers, and what the device has in their place.
_REPLACED: dict[str, tuple[str, ...]] = {
    "types": ("device/types", "device/hardware"),
    "memory": ("device/memory",),
    "lookup": (),
}


@cache
def device_header() -> str:
    """The text of ``tcf_device.hpp``."""
    headers: list[str] = []
    for name in mathlib.HEADERS:
        headers += _REPLACED.get(name, (f"mathlib/{name}",))
    headers += ["device/packs", "kernel", "device/team", "device/grid", "device/staging"]
    headers += ["device/contraction", "device/contraction_fma", "device/contraction_mma"]
    folder = resources.files("tcfuse.codegen")
    return "#pragma once\n" + "\n".join(
        folder.joinpath(f"{name}.hpp").read_text(encoding="utf-8") for name in headers
    )
