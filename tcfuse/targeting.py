"""Which machines a run compiles for: what ``auto`` means here, and which GPUs code is for."""

from __future__ import annotations

from dataclasses import replace

from tcfuse.errors import DeviceError, ToolchainError
from tcfuse.options import AUTO, OptimizeOptions
from tcfuse.targets.cuda_archs import arch_name, arch_number, default_archs, parse_archs
from tcfuse.targets.nvrtc_library import find_nvrtc


def resolved(options: OptimizeOptions) -> OptimizeOptions:
    """The options with every target and architecture spelt out.

    Raises:
        ToolchainError: Code for GPUs is wanted, and nothing here compiles it.
        OptionError: The compiler does not know an architecture.
    """
    target = _automatic() if options.target == AUTO else ",".join(options.targets)
    if "cuda" not in target:
        return replace(options, target=target)
    known = find_nvrtc().archs
    if options.cuda_arch:
        archs = parse_archs(options.cuda_arch, known)
    else:
        own = (name for name in gpus() if arch_number(name) in known)
        archs = tuple(sorted({*default_archs(known), *own}, key=arch_number))
    return replace(options, target=target, cuda_arch=",".join(archs))


def gpus() -> tuple[str, ...]:
    """The architecture of each GPU of this machine that can be used: ``sm_90``."""
    from tcfuse.gpu.libcuda import MAJOR, MINOR, Libcuda  # only where GPUs matter

    try:
        cuda = Libcuda()
        cuda.call("cuInit", 0)
        found = []
        for ordinal in range(cuda.number("cuDeviceGetCount")):
            device = cuda.number("cuDeviceGet", ordinal)
            major, minor = (
                cuda.number("cuDeviceGetAttribute", w, device) for w in (MAJOR, MINOR)
            )
            found.append(arch_name(10 * major + minor))
    except DeviceError:
        return ()
    return tuple(found)


def _automatic() -> str:
    """Both targets where there is a GPU and a compiler for it; a compiler alone is no wish.

    Other packages bring NVRTC too, and on a machine without a GPU its time would be wasted.
    """
    if not gpus():
        return "cpu"
    try:
        find_nvrtc()
    except ToolchainError:
        return "cpu"
    return "cpu,cuda"
