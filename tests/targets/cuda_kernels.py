"""Definitions compiled for GPUs."""

from __future__ import annotations

import re

from tcfuse.cuda_options import CudaOptions
from tcfuse.mapping_options import MappingOptions
from tcfuse.targets.cuda import Kernel, compile_kernel
from tcfuse.tc.checked import CheckedDef
from tests.targets.kernels import checked_of, interface_of

PLAIN = MappingOptions()


def cuda_kernel_of(
    definition: str | CheckedDef, options: MappingOptions = PLAIN, **knobs: int
) -> Kernel:
    """The kernel of a definition whose parameters are its ports."""
    checked = checked_of(definition) if isinstance(definition, str) else definition
    return compile_kernel(checked, interface_of(checked), "k", options, CudaOptions(**knobs))


def instances(kernel: Kernel) -> list[str]:
    """The template arguments of every launch: index type, team, lanes, groups, rows."""
    return re.findall(r"^  k_\w+<(.*)>\(", kernel.source.text, re.MULTILINE)


def plain_text(kernel: Kernel) -> str:
    """The text of a kernel without its digest and without the launches."""
    text = re.sub(r"k_[0-9a-f]{8}", "k", kernel.source.text)
    return re.sub(r"TCF_LAUNCH[^}]*}\n", "", text)
