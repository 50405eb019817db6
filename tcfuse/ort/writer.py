"""Write a model without ever holding its weights twice.

A protobuf message is the concatenation of its fields, in any order.  So everything but the
large tensors is serialized as usual, and each large tensor follows with its bytes taken from
where they are.  For a model of 400 MB that is half of the time and a third of the memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from tcfuse.graph.weights import StoredTensor
from tcfuse.graph.wire import (
    GRAPH_INITIALIZER,
    MODEL_GRAPH,
    TENSOR_RAW_DATA,
    record_bytes,
    tag,
)

LARGE_BYTES = 1 << 16
CHUNK_BYTES = 1 << 20  # of what is read, hashed and written at a time: they fit into a cache

Piece: TypeAlias = "bytes | memoryview"


def write_model(model: ir.Model, path: Path) -> str:
    """Write ``model``, external data aside, to ``path``; the SHA-256 of what was written."""
    digest = hashlib.sha256()
    with path.open("wb") as file, ThreadPoolExecutor(1) as pool:  # hash while writing
        hashed: Future[None] | None = None
        for piece in _pieces(model):
            if hashed is not None:
                hashed.result()
            hashed = pool.submit(digest.update, piece)
            file.write(piece)
    return digest.hexdigest()


def digest_if_same(model: ir.Model, path: Path, known: str | None = None) -> str | None:
    """The SHA-256 of the file ``path`` if it is what ``write_model`` would write there.

    What differs mostly differs near the beginning, so that the answer no is quick.

    Args:
        model: What is written.
        path: Where to.
        known: The SHA-256 of the file as it is now, where somebody knows it: hashing takes
            three times as long as comparing.
    """
    digest = hashlib.sha256()
    try:
        file = path.open("rb")
    except OSError:
        return None
    with file, ThreadPoolExecutor(1) as pool:
        hashed: Future[None] | None = None
        memory = np.empty(CHUNK_BYTES, np.uint8)
        for piece in _pieces(model):
            if hashed is not None:
                hashed.result()
            if known is None:
                hashed = pool.submit(digest.update, piece)
            if not _comes_next(file, piece, memory):
                return None
        same = not file.read(1)
    return (known or digest.hexdigest()) if same else None


def _comes_next(file: BinaryIO, piece: Piece, memory: np.ndarray) -> bool:
    """Whether the next bytes of a file, read into ``memory``, are those of ``piece``."""
    wanted = np.frombuffer(piece, np.uint8)
    for start in range(0, len(wanted), len(memory)):
        part = wanted[start : start + len(memory)]
        found = memory[: len(part)]
        n_bytes = file.readinto(found.data)  # type: ignore[attr-defined]
        if n_bytes != len(part) or not np.array_equal(found, part):
            return False
    return True


def _pieces(model: ir.Model) -> Iterator[Piece]:
    """The file, piece by piece; a piece is good until the next but one is asked for."""
    copy = model.clone()
    large: dict[str, ir.TensorProtocol] = {}
    for name, value in copy.graph.initializers.items():
        tensor = value.const_value
        if tensor is not None and _is_large(tensor):
            large[name] = tensor
            value.const_value = ir.Tensor(np.zeros(0, np.uint8), name=name)
    proto = ir.to_proto(copy)
    heads = {
        tensor.name: _head(tensor, large[tensor.name])
        for tensor in proto.graph.initializer
        if tensor.name in large
    }
    small = [tensor for tensor in proto.graph.initializer if tensor.name not in large]
    graph = onnx.GraphProto()
    graph.CopyFrom(proto.graph)
    proto.ClearField("graph")
    graph.ClearField("initializer")
    graph.initializer.extend(small)
    rest = graph.SerializeToString()
    sizes = {
        name: len(heads[name]) + record_bytes(TENSOR_RAW_DATA, large[name].nbytes)
        for name in large
    }
    yield proto.SerializeToString()
    total = sum(record_bytes(GRAPH_INITIALIZER, size) for size in sizes.values())
    yield tag(MODEL_GRAPH, len(rest) + total)
    yield rest
    memory = cycle([bytearray(CHUNK_BYTES), bytearray(CHUNK_BYTES)])
    for name, tensor in large.items():
        yield tag(GRAPH_INITIALIZER, sizes[name])
        yield heads[name]
        yield tag(TENSOR_RAW_DATA, tensor.nbytes)
        yield from _data(tensor, map(memoryview, memory))


def _is_large(tensor: ir.TensorProtocol) -> bool:
    """Whether the tensor's bytes are taken as they are; strings and packed types are not."""
    return (
        tensor.nbytes > LARGE_BYTES
        and not isinstance(tensor, ir.ExternalTensor)
        and tensor.dtype is not ir.DataType.STRING
        and tensor.dtype.bitwidth >= 8
    )


def _head(written: onnx.TensorProto, tensor: ir.TensorProtocol) -> bytes:
    """A tensor's fields but for its data."""
    head = onnx.TensorProto()
    head.CopyFrom(written)
    head.ClearField("raw_data")
    head.ClearField("dims")
    head.dims.extend(tensor.shape.numpy())
    head.data_type = tensor.dtype.value
    if tensor.doc_string:
        head.doc_string = tensor.doc_string
    serialized: bytes = head.SerializeToString()
    return serialized


def _data(tensor: ir.TensorProtocol, memory: Iterator[memoryview]) -> Iterator[Piece]:
    """A tensor's data in ONNX's order of bytes, not copied where that is its own."""
    if isinstance(tensor, StoredTensor):
        yield from tensor.chunks(memory)
        return
    array = tensor.numpy()
    if array.dtype.byteorder == ">" or not array.flags.c_contiguous:
        yield tensor.tobytes()
    else:
        yield array.reshape(-1).view(np.uint8).data
