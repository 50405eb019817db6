"""Large weights of a model file, which stay in it until somebody needs them.

A protobuf message owns its bytes, and hands out copies: of weights of 400 MB, one for parsing
and one for each look at them.  So the data of large initializers is passed over while the file
is read; a tensor that knows where it lies takes its place.  A run that finds everything in the
cache never has the weights in memory.

The file stays open: one that replaces it is another file.  One that is written to in place
is noticed, and an error.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import onnx_ir as ir

from tcfuse.errors import InputError
from tcfuse.graph.wire import (
    GRAPH_INITIALIZER,
    MODEL_GRAPH,
    TENSOR_DATA_LOCATION,
    TENSOR_DATA_TYPE,
    TENSOR_NAME,
    TENSOR_RAW_DATA,
    Field,
    Stream,
    WireError,
    fields,
    tag,
)

LARGE_BYTES = 1 << 16
_ODD = (ir.DataType.UNDEFINED, ir.DataType.STRING)
_PLAIN = frozenset(d.value for d in ir.DataType if d not in _ODD and d.bitwidth >= 8)
_SUPPORTED = sys.byteorder == "little" and hasattr(os, "preadv")


class Place(NamedTuple):
    """Where data lies in a file."""

    offset: int
    n_bytes: int


class OpenFile:
    """A file that is read here and there, and must not change meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        self._state = self._now()

    @property
    def n_bytes(self) -> int:
        """Its length."""
        return self._state[0]

    def from_beginning(self) -> BinaryIO:
        """The same file, to be read in order."""
        file = os.fdopen(os.dup(self._descriptor), "rb")
        file.seek(0)
        return file

    def read_into(self, memory: memoryview, offset: int) -> None:
        """Fill ``memory`` with the bytes from ``offset`` on.

        Raises:
            InputError: Somebody has written to the file.
        """
        done = 0
        while done < len(memory):
            n_bytes = os.preadv(self._descriptor, [memory[done:]], offset + done)
            if not n_bytes:
                break
            done += n_bytes
        if done < len(memory) or self._now() != self._state:
            raise InputError(f"{self._path} has changed while it was in use; start again")

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns


class StoredTensor(ir.LazyTensor):
    """A tensor whose data is in a model file, and in memory once somebody has asked for it."""

    __slots__ = ("_file", "_place")

    def __init__(self, file: OpenFile, place: Place, like: ir.TensorProtocol) -> None:
        shape = ir.Shape(like.shape.numpy())
        super().__init__(
            self._read,
            like.dtype,
            shape,
            cache=True,
            name=like.name,
            doc_string=like.doc_string,
            metadata_props=dict(like.metadata_props),
        )
        self._file, self._place = file, place

    def _read(self) -> ir.TensorProtocol:
        memory = np.empty(self._place.n_bytes, np.uint8)
        self._file.read_into(memory.data, self._place.offset)
        array = memory.view(self.dtype.numpy()).reshape(self.shape.numpy())
        array.flags.writeable = False
        return ir.Tensor(array, self.dtype, name=self.name)

    def chunks(self, memory: Iterator[memoryview]) -> Iterator[memoryview]:
        """Its bytes, piece by piece, without having them all in memory.

        Args:
            memory: Where the pieces are put, one after the other.
        """
        offset, end = self._place.offset, self._place.offset + self._place.n_bytes
        while offset < end:
            piece = next(memory)[: end - offset]
            self._file.read_into(piece, offset)
            offset += len(piece)
            yield piece


@dataclass(frozen=True, slots=True, eq=False)
class ModelFile:
    """A model file, taken apart.

    Attributes:
        message: It without the data of large initializers; all of it where it is small, unusual
            or damaged, so that the parser says what is wrong.
        places: Where the data is that the message is without, by the initializers' names.
    """

    file: OpenFile
    message: bytes
    places: Mapping[str, Place]

    @classmethod
    def read(cls, path: Path) -> ModelFile:
        """Read all but the large data."""
        opened = OpenFile(path)
        with opened.from_beginning() as file:
            if opened.n_bytes > LARGE_BYTES and _SUPPORTED:
                places: dict[str, Place] = {}
                try:
                    return cls(opened, _model(Stream(file), opened.n_bytes, places), places)
                except WireError:
                    file.seek(0)
            return cls(opened, file.read(), {})

    def put_back(self, model: ir.Model) -> None:
        """Give a model's initializers the data that is in the file.

        Those whose shape promises more or less than there is get it as a parser would have
        given it, for the check of all tensors to find.
        """
        for name, place in self.places.items():
            value = model.graph.initializers[name]
            empty = value.const_value
            assert isinstance(empty, ir.serde.TensorProtoTensor)
            if empty.nbytes == place.n_bytes and min(empty.shape.numpy(), default=0) >= 0:
                value.const_value = StoredTensor(self.file, place, empty)
            else:
                data = bytearray(place.n_bytes)
                self.file.read_into(memoryview(data), place.offset)
                empty.raw.raw_data = bytes(data)


def _model(stream: Stream, end: int, places: dict[str, Place]) -> bytes:
    """The message of a model without what ``places`` then tells of."""
    pieces: list[bytes] = []
    n_graphs = 0
    for field in fields(stream, end):
        if field.number == MODEL_GRAPH and field.n_bytes >= 0:
            n_graphs += 1
            graph = _graph(stream, stream.at + field.n_bytes, places)
            pieces += [tag(MODEL_GRAPH, len(graph)), graph]
        else:
            pieces += _whole(stream, field)
    if n_graphs > 1:  # a parser would merge them
        raise WireError("there are two graphs")
    return b"".join(pieces)


def _graph(stream: Stream, end: int, places: dict[str, Place]) -> bytes:
    pieces: list[bytes] = []
    for field in fields(stream, end):
        if field.number == GRAPH_INITIALIZER and field.n_bytes > LARGE_BYTES:
            tensor = _tensor(stream, stream.at + field.n_bytes, places)
            pieces += [tag(GRAPH_INITIALIZER, len(tensor)), tensor]
        else:
            pieces += _whole(stream, field)
    return b"".join(pieces)


def _tensor(stream: Stream, end: int, places: dict[str, Place]) -> bytes:
    """The message of an initializer, without its data if that lies there as it is in memory."""
    start, pieces = stream.at, list[bytes]()
    name, dtype, found = b"", 0, list[Place]()
    for field in fields(stream, end):
        if field.number == TENSOR_RAW_DATA and field.n_bytes > LARGE_BYTES:
            found.append(Place(stream.at, field.n_bytes))
            stream.go_to(stream.at + field.n_bytes)
            continue
        value = _whole(stream, field)
        pieces += value
        if field.number == TENSOR_NAME:
            name = value[-1]
        elif field.number == TENSOR_DATA_TYPE:
            dtype = field.value
        elif field.number == TENSOR_DATA_LOCATION:
            break
    text = name.decode(errors="replace")
    if stream.at == end and len(found) == 1 and dtype in _PLAIN and text not in places:
        places[text] = found[0]
        return b"".join(pieces)
    stream.go_to(start)
    return stream.read(end - start)


def _whole(stream: Stream, field: Field) -> tuple[bytes, ...]:
    """A field as it stands in the file."""
    return (field.head,) if field.n_bytes < 0 else (field.head, stream.read(field.n_bytes))
