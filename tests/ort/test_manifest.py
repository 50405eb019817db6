"""The manifest is read back as it was written, and damage is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcfuse.errors import InputError
from tcfuse.ort.manifest import (
    RegionReport,
    Report,
    library_path,
    manifest_path,
    read_manifest,
    sha256,
    versions,
)
from tcfuse.ort.record import (
    interface_from_json,
    interface_to_json,
    source_from_json,
    source_to_json,
)
from tcfuse.targets.base import Interface, KernelSource, Phase, Port
from tcfuse.types import DType, TensorType

INTERFACE = Interface(
    (Port("x", TensorType(DType.FLOAT16, ("n0", 8))),),
    (Port("y", TensorType(DType.BOOL, ("n1",))),),
    ("n0", "n1"),
    (("n1", "n0 * 8"),),
    (("n0 > 1", "too few rows"),),
)
REPORT = Report(
    "m.onnx",
    {"target": "cpu"},
    (
        RegionReport("k_0", ("Add a", "Relu b"), True, tc="def k...", measured={"error": 1e-7}),
        RegionReport("", ("Conv",), False, "no definition"),
    ),
    (("MatMul c", "a contraction"),),
    speedup=1.25,
    notes=("one",),
)


def test_a_report_is_read_back():
    assert Report.from_json(REPORT.to_json()) == REPORT
    assert [region.name for region in REPORT.kept] == ["k_0"]


def test_a_signature_and_a_source_are_read_back():
    assert interface_from_json(interface_to_json(INTERFACE)) == INTERFACE
    source = KernelSource(
        "k", "text", INTERFACE, (Phase("k_0", "n0", "8"),), "8 * n0", "4", "tc"
    )
    assert source_from_json(source_to_json(source)) == source


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 99}', '{"format": 1}'])
def test_a_damaged_manifest_is_reported(text: str):
    with pytest.raises(InputError, match="manifest"):
        Report.from_json(text)


def test_files_lie_beside_the_model():
    assert manifest_path(Path("d/m.onnx")) == Path("d/m.tcfuse.json")
    assert manifest_path(Path("d/m.tcfuse.onnx")) == Path("d/m.tcfuse.json")
    assert library_path(Path("d/m.tcfuse.onnx")) == Path("d/m.tcfuse.so")


def test_a_model_without_a_manifest_says_how_to_get_one(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        read_manifest(tmp_path / "m.onnx")
    (tmp_path / "m.onnx").write_bytes(b"x")
    with pytest.raises(InputError, match="tcfuse optimize"):
        read_manifest(tmp_path / "m.onnx")


def test_digests_are_of_files_that_exist(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"")
    found = sha256([("model", tmp_path / "a"), ("library", tmp_path / "b")])
    assert found == {
        "model": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    }


def test_versions_name_tcfuse():
    assert {"python", "tcfuse", "onnx-ir"} <= versions().keys()
