"""How a region runs on a GPU, as C: its launches as functions of sizes, and its code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcfuse.ort.c_text import array, declare, guarded, quote
from tcfuse.ort.images import SYMBOL, ImageData
from tcfuse.ort.operators import CudaKernel
from tcfuse.targets.base import CudaSource, Launch
from tcfuse.targets.nvrtc import Image
from tcfuse.types import size_names

HEAD = f"""#include "tcf_cuda.h"
extern TCF_HIDDEN const unsigned char {SYMBOL}[];
extern TCF_HIDDEN const TcfGpu tcf_cuda_gpu;
"""


def cuda_parts(k: int, kernel: CudaKernel, images: ImageData) -> Iterator[str]:
    """Declarations and functions of region number ``k``."""
    source = kernel.source
    launches = [(p, launch) for p, each in enumerate(source.phases) for launch in each.launches]
    assert launches, f"{source.name} has nothing to launch"
    last = [phase.launches[-1] for phase in source.phases]
    for number, (phase, launch) in enumerate(launches):
        when = "1" if launch is last[phase] else launch.when
        yield _launch(f"launch_{k}_{number}", launch, when, source)
    yield array(
        f"const TcfLaunch launches_{k}[]",
        (_row(f"launch_{k}_{n}", p, launch) for n, (p, launch) in enumerate(launches)),
    )
    yield array(
        f"const TcfImage images_{k}[]",
        (image_row(image, images.offsets[image.data]) for image in kernel.images),
    )
    yield _scratch(k, source)
    counts = f"launches_{k}, {len(launches)}, images_{k}, {len(kernel.images)}"
    yield f"static const TcfCuda cuda_{k} = {{{counts}, scratch_{k}}};"


def cuda_fields(k: int) -> dict[str, str]:
    """The same region's entry in the table."""
    return {"cuda": f"&cuda_{k}"}


def image_row(image: Image, offset: int) -> str:
    """Code as C; ``sm_90a`` is for that architecture alone, ``sm_100f`` for its family."""
    parts = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)([af]?)", image.arch)
    assert parts, f"{image.arch!r} is no architecture"
    assert image.kind in ("cubin", "ptx"), f"{image.kind!r} is no kind of code"
    is_ptx, is_exact = int(image.kind == "ptx"), int(parts[3] == "a")
    return f"{{{parts[1]}, {parts[2]}, {is_ptx}, {is_exact}, {SYMBOL} + {offset}}}"


def _launch(name: str, launch: Launch, when: str, source: CudaSource) -> str:
    """The function that says whether a launch is the one to use, and how large it is."""
    used = size_names([when, launch.grid, launch.shared_bytes])
    numbers = f"{guarded(launch.grid)}, {guarded(launch.shared_bytes)}"
    return "\n".join(
        (
            f"static int {name}(const int64_t *tcf_sizes, int64_t tcf_alignment,",
            "                    int64_t tcf_shared_limit, TcfGrid *tcf_grid) {",
            *declare(source.interface.sizes, used),
            f"  if (!({guarded(when)})) return 0;",
            f"  *tcf_grid = (TcfGrid){{{numbers}}};",
            "  return 1;",
            "}",
        )
    )


def _row(function: str, phase: int, launch: Launch) -> str:
    numbers = f"{phase}, {launch.block}, {launch.blocks_per_multiprocessor}"
    return f"{{{quote(launch.symbol)}, {numbers}, {function}}}"


def _scratch(k: int, source: CudaSource) -> str:
    """The function that computes the bytes of scratch."""
    return "\n".join(
        (
            f"static int64_t scratch_{k}(const int64_t *tcf_sizes) {{",
            *declare(source.interface.sizes, size_names([source.scratch_bytes])),
            f"  return {guarded(source.scratch_bytes)};",
            "}",
        )
    )
