"""What is told of every launch, as records and as a table."""

from __future__ import annotations

import json
from dataclasses import replace

from tcfuse.targets.base import CudaPhase, CudaSource, Launch
from tcfuse.targets.launch_report import HEADER, launch_records, resources_table
from tcfuse.targets.resources import Resources
from tests.targets.cuda_sources import ELEMENTWISE

NEEDS = Resources(
    registers=62,
    spill_stores=0,
    spill_loads=0,
    stack=0,
    shared=256,
    code_bytes=13952,
    load_bytes=16,
    store_bytes=8,
)
ALIGNED = Launch("scale_0", "n", 256, "0", "(n % 4 == 0) && (tcf_alignment % 16 == 0)")
SIZED = Launch("scale_1", "n", 1024, "64 * ((4 * n + 63) / 64)")


def source(*launches: Launch) -> CudaSource:
    return replace(ELEMENTWISE, phases=tuple(CudaPhase((launch,)) for launch in launches))


def table(given: CudaSource, needs: Resources, *archs: str) -> list[dict[str, str]]:
    resources = {launch.symbol: dict.fromkeys(archs, needs) for launch in given.launches}
    records = json.loads(json.dumps(launch_records(given, resources)))
    lines = resources_table([("scale_on_the_cpu", records)])
    return [dict(zip(HEADER, line, strict=True)) for line in lines]


def test_there_is_a_line_for_each_launch_and_architecture() -> None:
    lines = table(source(ALIGNED, SIZED), NEEDS, "sm_80", "sm_90")
    assert [(line["launch"], line["arch"]) for line in lines] == [
        ("0", "sm_80"),
        ("0", "sm_90"),
        ("1", "sm_80"),
        ("1", "sm_90"),
    ]


def test_a_line_tells_all_of_a_launch() -> None:
    (line,) = table(source(ALIGNED), replace(NEEDS, spill_stores=8, spill_loads=4), "sm_90")
    assert line == {
        "kernel": "scale_on_the_cpu",
        "launch": "0",
        "arch": "sm_90",
        "threads": "256",
        "registers": "62",
        "spills": "8/4",
        "stack": "0",
        "shared": "256",
        "code": "13952",
        "load": "16",
        "store": "8",
        "meant": "16",
        "blocks": "4",
        "occupancy": "50%",
        "limited by": "registers",
    }


def test_shared_memory_counts_when_it_is_a_number() -> None:
    launch = replace(ALIGNED, shared_bytes="96 * 1024")
    (line,) = table(source(launch), replace(NEEDS, registers=32), "sm_90")
    assert (line["shared"], line["blocks"]) == ("98560", "2")
    assert line["limited by"] == "shared memory"


def test_shared_memory_that_depends_on_sizes_only_lowers_the_occupancy() -> None:
    (line,) = table(source(SIZED), NEEDS, "sm_90")
    assert line["shared"] == "256 + 64 * ((4 * n + 63) / 64)"
    assert (line["blocks"], line["occupancy"]) == ("<= 1", "<= 50%")


def test_an_architecture_without_limits_has_no_occupancy() -> None:
    (line,) = table(source(ALIGNED), NEEDS, "sm_999")
    assert (line["blocks"], line["occupancy"], line["limited by"]) == ("?", "?", "")
