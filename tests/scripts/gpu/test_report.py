"""The table: what stands in it follows from the results."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.gpu.limits import copy_rate
from scripts.gpu.report import limit_of, report
from scripts.gpu.results import OtherMachineError, Results

FACTS = {
    "name": "H200",
    "arch": "sm_90",
    "multiprocessors": 132,
    "memory_bytes": 139 << 30,
    "l2_bytes": 50 << 20,
    "driver": "13.0",
}
LIMITS: dict[str, Any] = {
    "limits/copy": {"status": "ok", "bytes_per_second": {"1048576": 1e12, "268435456": 4e12}},
    "limits/products": {"status": "ok", "flops_per_second": {"float32": 5e13}},
}
MICRO: dict[str, Any] = {
    "status": "ok",
    "kind": "memory",
    "bytes": 200 << 20,
    "flops": 0,
    "notes": {"torch.compile": "wrong: error 1"},
    "seconds": {
        "tcfuse": {"launched": [70e-6] * 5, "graph": [60e-6] * 5},
        "torch eager": {"launched": [240e-6] * 5, "graph": [180e-6] * 5},
        "ONNX Runtime": {"launched": [140e-6] * 5},
    },
}


def test_copies_are_compared_with_copies_of_their_size() -> None:
    assert copy_rate(LIMITS["limits/copy"], 1000) == 1e12
    assert copy_rate(LIMITS["limits/copy"], 2 << 20) == 4e12
    assert copy_rate(LIMITS["limits/copy"], 1 << 40) == 4e12
    assert copy_rate({}, 1000) is None


def test_the_nearer_limit_counts() -> None:
    assert limit_of(LIMITS, {"bytes": 400 << 20}) == pytest.approx((400 << 20) / 4e12)
    assert limit_of(LIMITS, {"bytes": 8, "flops": 10**12}) == pytest.approx(0.02)
    assert limit_of({}, {"bytes": 8, "flops": 8}) is None


def test_table() -> None:
    items = {**LIMITS, "micro/gelu": MICRO, "cases/a": {"status": "ok"}}
    items["cases/b"] = {"status": "wrong", "why": "Y: error 3"}
    text = report({"machine": {"facts": FACTS, "missing": ["pycuda: x"]}, "items": items})
    lines = text.splitlines()
    assert lines[0].startswith("H200, sm_90, 132 multiprocessors, 139 GiB, L2 50 MiB")
    assert "missing: pycuda: x" in lines
    assert "cases: 1 ok, 1 wrong" in lines
    assert "  cases/b: wrong: Y: error 3" in lines
    (ours,) = (line.split() for line in lines if line.startswith("gelu"))
    assert ours == ["gelu", "tcfuse", "70.0", "60.0", "0%", "1.00", "87%"]
    (eager,) = (line.split() for line in lines if "torch eager " in line and "us" not in line)
    assert eager == ["torch", "eager", "240.0", "180.0", "0%", "3.00", "29%"]
    (stock,) = (line.split() for line in lines if line.startswith("       ONNX Runtime "))
    assert stock[2:] == ["140.0", "-", "0%", "2.00", "37%"]
    assert "micro/gelu: torch.compile: wrong: error 1" in lines
    assert "torch eager takes 3.00 times as long as tcfuse, 1 memory graphs" in lines


def test_results_of_another_machine_are_not_mixed(tmp_path) -> None:
    path = tmp_path / "found.json"
    results = Results(path)
    results.set_machine({"device": "A", "commit": "1"})
    results.put("a", {"status": "ok"})
    results.put("b", {"status": "failed"})
    known = Results(path)
    known.set_machine({"device": "A", "commit": "1"})
    assert known.is_done("a")
    assert not known.is_done("b")
    for machine in ({"device": "B", "commit": "1"}, {"device": "A", "commit": "2"}):
        with pytest.raises(OtherMachineError, match="--fresh forgets them"):
            Results(path).set_machine(machine)
    Results(path, fresh=True).set_machine({"device": "B", "commit": "2"})
