"""What every launch of a kernel takes of every GPU it was compiled for: records and a table.

A record is a JSON object, for the manifest; the table is made from records alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from tcfuse.errors import UnsupportedError
from tcfuse.targets.base import CudaSource, Launch
from tcfuse.targets.c_expression import evaluate
from tcfuse.targets.cuda_archs import arch_number
from tcfuse.targets.occupancy import occupancy
from tcfuse.targets.resources import Resources, meant_bytes

Record: TypeAlias = dict[str, Any]

HEADER = (
    "kernel",
    "launch",
    "arch",
    "threads",
    "registers",
    "spills",
    "stack",
    "shared",
    "code",
    "load",
    "store",
    "meant",
    "blocks",
    "occupancy",
    "limited by",
)


def launch_records(
    source: CudaSource, resources: Mapping[str, Mapping[str, Resources]]
) -> list[Record]:
    """A record for each launch and architecture.

    It holds ``source`` (its name), ``launch`` (the symbol), ``arch``, ``threads`` (of a block),
    ``when``, the fields of ``Resources``, ``dynamic_shared`` (bytes of a block, or a C
    expression over size names), ``meant_bytes``, and of the occupancy ``blocks`` (of a
    multiprocessor), ``share`` (of its warps) and ``limiter``, ``None`` where limits are not
    known.  Where ``dynamic_shared`` depends on sizes, the occupancy is that of sizes for which
    it is 0.

    Args:
        source: The kernel.
        resources: By symbol and architecture, as ``targets.nvrtc`` has them.
    """
    return [
        {"source": source.name, **_record(launch, arch, needs)}
        for launch in source.launches
        for arch, needs in resources[launch.symbol].items()
    ]


def _record(launch: Launch, arch: str, needs: Resources) -> Record:
    dynamic = _constant(launch.shared_bytes)
    found = occupancy(
        arch_number(arch), needs.registers, launch.block, needs.shared + (dynamic or 0)
    )
    full = {"blocks": None, "share": None, "limiter": None} if found is None else asdict(found)
    return {
        "launch": launch.symbol,
        "arch": arch,
        "threads": launch.block,
        "when": launch.when,
        **asdict(needs),
        "dynamic_shared": launch.shared_bytes if dynamic is None else dynamic,
        "meant_bytes": meant_bytes(launch),
        **full,
    }


def _constant(expression: str) -> int | None:
    """The value of an expression without size names."""
    try:
        return evaluate(expression, {})
    except UnsupportedError:
        return None


def resources_table(
    kernels: Iterable[tuple[str, Iterable[Record]]],
) -> Iterator[tuple[str, ...]]:
    """The lines below ``HEADER``: one for each record of each kernel.

    Args:
        kernels: The name of each operator, which may be that of its kernel for the CPU, and
            the records of its kernel for GPUs.

    Units:
        bytes: Spills as stored and loaded again, stack, shared memory, code, accesses.
    """
    for kernel, records in kernels:
        for record in records:
            yield (kernel, *_line(record))


def _line(record: Record) -> Iterator[str]:
    yield str(record["launch"]).removeprefix(f"{record['source']}_")
    yield str(record["arch"])
    yield str(record["threads"])
    yield str(record["registers"])
    yield f"{record['spill_stores']}/{record['spill_loads']}"
    yield str(record["stack"])
    dynamic = record["dynamic_shared"]
    by_sizes = isinstance(dynamic, str)
    yield f"{record['shared']} + {dynamic}" if by_sizes else str(record["shared"] + dynamic)
    for key in ("code_bytes", "load_bytes", "store_bytes", "meant_bytes"):
        yield str(record[key])
    if record["blocks"] is None:
        yield from ("?", "?", "")
        return
    at_most = "<= " if by_sizes else ""
    yield f"{at_most}{record['blocks']}"
    yield f"{at_most}{record['share']:.0%}"
    yield str(record["limiter"])
