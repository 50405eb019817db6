"""Large weights stay in the model file until somebody needs them."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from tcfuse.errors import InputError
from tcfuse.graph.load import load_model
from tcfuse.graph.weights import LARGE_BYTES, ModelFile, StoredTensor
from tcfuse.ort.writer import write_model

LARGE = LARGE_BYTES + 40
ARRAYS = {
    "floats": np.arange(LARGE // 4 * 3, dtype=np.float32).reshape(3, -1),
    "halves": np.arange(LARGE // 2, dtype=np.uint16).view(np.float16),
    "brains": np.arange(LARGE // 2).astype(ml_dtypes.bfloat16),
    "indices": np.arange(LARGE // 8, dtype=np.int64),
    "truths": np.arange(LARGE) % 3 == 0,
    "bytes": np.arange(LARGE).astype(np.uint8),
    "small": np.arange(6, dtype=np.float64).reshape(2, 3),
}


def model(tensors: list[TensorProto]) -> onnx.ModelProto:
    """A model whose nodes read every tensor."""
    nodes = [helper.make_node("Shape", [t.name], [f"shape of {t.name}"]) for t in tensors]
    outputs = [
        helper.make_tensor_value_info(node.output[0], TensorProto.INT64, None) for node in nodes
    ]
    graph = helper.make_graph(nodes, "g", [], outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def saved(path: Path, tensors: list[TensorProto]) -> Path:
    path.write_bytes(model(tensors).SerializeToString())
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    tensors = [numpy_helper.from_array(array, name) for name, array in ARRAYS.items()]
    tensors[0].doc_string = "about it"
    return saved(tmp_path / "model.onnx", tensors)


def weights(path: Path) -> dict[str, ir.TensorProtocol]:
    """The initializers of the file, as they are before anything folds them."""
    found = ModelFile.read(path)
    read = ir.from_proto(onnx.ModelProto.FromString(found.message))
    found.put_back(read)
    values = read.graph.initializers.values()
    return {str(v.name): v.const_value for v in values if v.const_value is not None}


def test_tensors_are_what_they_are(source: Path):
    found = weights(source)
    assert {n for n, t in found.items() if isinstance(t, StoredTensor)} == {*ARRAYS} - {"small"}
    for name, array in ARRAYS.items():
        assert found[name].numpy().dtype == array.dtype
        np.testing.assert_array_equal(found[name].numpy(), array)
        assert found[name].tobytes() == array.tobytes()
        assert found[name].name == name
    assert found["floats"].doc_string == "about it"


def test_a_message_is_small(source: Path):
    assert len(ModelFile.read(source).message) < 2000


def test_a_model_is_written_as_it_was_without_its_weights_in_memory(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(_: object) -> None:
        raise AssertionError("the weights were loaded")

    monkeypatch.setattr(StoredTensor, "_read", fail)
    monkeypatch.setattr("tcfuse.ort.writer.CHUNK_BYTES", 1000)
    write_model(load_model(source), tmp_path / "out.onnx")
    written = {t.name: t for t in onnx.load(tmp_path / "out.onnx").graph.initializer}
    for tensor in onnx.load(source).graph.initializer:
        assert written[tensor.name].raw_data == tensor.raw_data
        assert written[tensor.name].dims == tensor.dims
    assert written["floats"].doc_string == "about it"


def test_a_file_that_is_written_to_is_noticed(source: Path):
    tensor = weights(source)["floats"]
    state = source.stat()
    with source.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"?")
    os.utime(source, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    with pytest.raises(InputError, match=r"model\.onnx has changed while it was in use"):
        tensor.numpy()


def test_a_file_that_is_cut_off_meanwhile_is_noticed(source: Path):
    found = weights(source)
    os.truncate(source, 1000)
    with pytest.raises(InputError, match="has changed"):
        found["bytes"].numpy()
    with pytest.raises(InputError, match="has changed"):
        list(found["bytes"].chunks(iter([memoryview(bytearray(99))])))


def test_a_file_that_is_replaced_is_still_there(source: Path):
    found = weights(source)
    other = source.with_name("other.onnx")
    other.write_bytes(b"something else")
    other.replace(source)
    np.testing.assert_array_equal(found["floats"].numpy(), ARRAYS["floats"])


def test_a_file_is_closed_with_its_last_tensor(source: Path):
    def n_open() -> int:
        return sum(
            Path(f"/proc/self/fd/{n}").resolve() == source for n in os.listdir("/proc/self/fd")
        )

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not list open files")
    found = weights(source)
    assert n_open() == 1
    kept = found["bytes"]
    del found
    gc.collect()
    assert n_open() == 1
    kept.numpy()
    del kept
    gc.collect()
    assert n_open() == 0


@pytest.mark.parametrize("n_bytes", [LARGE - 4, LARGE + 4])
def test_too_much_or_too_little_data_is_refused(n_bytes: int, tmp_path: Path):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[LARGE // 4])
    tensor.raw_data = bytes(n_bytes)
    with pytest.raises(InputError, match="'w' holds more or less data than its shape needs"):
        load_model(saved(tmp_path / "model.onnx", [tensor]))


def test_a_file_that_ends_in_the_middle_of_the_weights_is_refused(source: Path):
    os.truncate(source, source.stat().st_size // 2)
    with pytest.raises(InputError, match=r"is not a valid ONNX model: .* may be truncated"):
        load_model(source)


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path):
    tensors = [numpy_helper.from_array(ARRAYS[name], "w") for name in ("floats", "bytes")]
    path = tmp_path / "model.onnx"
    proto = model(tensors)
    del proto.graph.node[1:]
    del proto.graph.output[1:]
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(InputError, match="initializer 'w' is there twice"):
        load_model(path)


def unusual(tensor: TensorProto, kind: str) -> bytes:
    """A model with the tensor in a form that hardly anybody writes."""
    whole = model([tensor]).SerializeToString()
    if kind == "two graphs":  # merged by a parser
        return (
            whole
            + onnx.ModelProto(graph=onnx.GraphProto(doc_string="more")).SerializeToString()
        )
    other = TensorProto()
    other.CopyFrom(tensor)
    other.ClearField("raw_data")
    if kind == "numbers":
        other.float_data.extend(ARRAYS["floats"].ravel())
        return model([other]).SerializeToString()
    assert kind == "data twice"  # the last counts
    name = other.SerializeToString()
    first = onnx.TensorProto(raw_data=bytes(len(tensor.raw_data))).SerializeToString()
    last = onnx.TensorProto(raw_data=tensor.raw_data).SerializeToString()
    broken = model([tensor])
    broken.graph.ClearField("initializer")
    text = name + first + last
    graph = broken.graph.SerializeToString() + b"\x2a" + varint(len(text)) + text
    broken.ClearField("graph")
    return broken.SerializeToString() + b"\x3a" + varint(len(graph)) + graph


def varint(number: int) -> bytes:
    found = []
    while number > 127:
        found.append(number % 128 + 128)
        number //= 128
    return bytes([*found, number])


@pytest.mark.parametrize("kind", ["two graphs", "numbers", "data twice"])
def test_unusual_files_are_read_as_a_parser_reads_them(kind: str, tmp_path: Path):
    path = tmp_path / "model.onnx"
    path.write_bytes(unusual(numpy_helper.from_array(ARRAYS["floats"], "floats"), kind))
    (tensor,) = weights(path).values()
    assert not isinstance(tensor, StoredTensor)
    np.testing.assert_array_equal(tensor.numpy(), ARRAYS["floats"])


def test_elements_that_share_a_byte_are_left_to_the_parser(tmp_path: Path):
    tensor = TensorProto(name="w", data_type=TensorProto.INT4, dims=[2 * LARGE])
    tensor.raw_data = bytes(range(256)) * (LARGE // 256) + bytes(LARGE % 256)
    found = weights(saved(tmp_path / "model.onnx", [tensor]))["w"]
    assert not isinstance(found, StoredTensor)
    assert found.tobytes() == tensor.raw_data
