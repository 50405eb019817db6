"""A model written piece by piece is the model written at once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from models import bert
from models.draft import Draft
from tcfuse.ort import writer
from tcfuse.ort.writer import digest_if_same, write_model


def sorted_proto(path: Path) -> onnx.ModelProto:
    """The model with its initializers by name: their order means nothing."""
    proto = onnx.load(path, load_external_data=False)
    tensors = sorted(proto.graph.initializer, key=lambda tensor: tensor.name)
    copies = [onnx.TensorProto.FromString(tensor.SerializeToString()) for tensor in tensors]
    proto.graph.ClearField("initializer")
    proto.graph.initializer.extend(copies)
    return proto


def varied() -> ir.Model:
    """Tensors of every kind: large and small, floats, integers, halves, empty, a scalar."""
    g = Draft("varied")
    x = g.input("x", [1])
    arrays = (
        np.arange(1000, dtype=np.float32),
        np.arange(1000, dtype=np.int64).reshape(10, 100)[:, ::2],
        np.ones((3, 500), np.float16),
        np.zeros((0, 4), np.float32),
        np.array(3.0, np.float64),
        np.arange(999) % 2 == 0,
    )
    for array in arrays:
        g.constant(array, array.dtype)
    g.output(g.op("Neg", x), "y", [1])
    return g.model()


@pytest.mark.parametrize("large", [0, 100, 1 << 16, 1 << 30])
@pytest.mark.parametrize("build", [varied, bert.build])
def test_the_two_ways_give_one_model(
    build, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "LARGE_BYTES", large)
    model = build()
    digest = write_model(model, tmp_path / "pieces.onnx")
    ir.save(model, tmp_path / "whole.onnx")
    assert sorted_proto(tmp_path / "pieces.onnx") == sorted_proto(tmp_path / "whole.onnx")
    assert digest == hashlib.sha256((tmp_path / "pieces.onnx").read_bytes()).hexdigest()
    onnx.checker.check_model(tmp_path / "pieces.onnx")


def test_a_model_read_from_a_file_is_written_again(tmp_path: Path):
    ir.save(bert.build(), tmp_path / "in.onnx")
    write_model(ir.load(tmp_path / "in.onnx"), tmp_path / "out.onnx")
    assert sorted_proto(tmp_path / "in.onnx") == sorted_proto(tmp_path / "out.onnx")


@pytest.mark.parametrize("large", [100, 1 << 30])
def test_a_file_is_told_from_another(
    large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "LARGE_BYTES", large)
    monkeypatch.setattr(writer, "CHUNK_BYTES", 64)
    path = tmp_path / "model.onnx"
    model = varied()
    assert digest_if_same(model, path) is None
    digest = write_model(model, path)
    assert digest_if_same(model, path) == digest
    data = path.read_bytes()
    for k in (0, 20, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :])
        assert digest_if_same(model, path) is None
    for other in (data[:-1], data + b"?", b""):
        path.write_bytes(other)
        assert digest_if_same(model, path) is None
