"""Protocol Buffers' encoding, as far as a model file is taken apart and put together by it.

A message is the concatenation of its fields: a tag (number and wire type) and a value, whose
length stands before it where it is a text, bytes or a message.

Source: Protocol Buffers, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

# Numbers of fields in onnx.proto.
MODEL_GRAPH = 7
GRAPH_INITIALIZER = 5
TENSOR_DATA_TYPE, TENSOR_NAME, TENSOR_RAW_DATA, TENSOR_DATA_LOCATION = 2, 8, 9, 14

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5  # wire types
_FIXED = {FIXED64: 8, FIXED32: 4}


class WireError(ValueError):
    """The bytes are no message, or one that nobody writes."""


class Stream:
    """A file, read from its beginning to its end.

    Attributes:
        at: Where the next byte lies.
    """

    __slots__ = ("_file", "at")

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.at = file, 0

    def read(self, n_bytes: int) -> bytes:
        """The next bytes.

        Raises:
            WireError: There are fewer.
        """
        data = self._file.read(n_bytes)
        self.at += n_bytes
        if len(data) != n_bytes:
            raise WireError("the file ends too early")
        return data

    def go_to(self, at: int) -> None:
        """Go on with the byte at ``at``."""
        self._file.seek(at)
        self.at = at

    def varint(self) -> tuple[int, bytes]:
        """A number of at most 64 bits, and the bytes that it is made of."""
        number, data = 0, b""
        for shift in range(0, 70, 7):
            byte = self.read(1)
            data += byte
            number |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return number, data
        raise WireError("a number is too long")


class Field(NamedTuple):
    """A field whose value, if it has a length, is yet to be read.

    Attributes:
        head: Its tag, and its value or the length of it.
        number: Which field it is.
        value: Of a varint.
        n_bytes: Still to be read; -1 where there is no length.
    """

    head: bytes
    number: int
    value: int
    n_bytes: int


def fields(stream: Stream, end: int) -> Iterator[Field]:
    """The fields of a message that ends at ``end``; who takes one reads its value.

    Raises:
        WireError: The message is damaged.
    """
    while stream.at < end:
        key, head = stream.varint()
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, data = stream.varint()
            yield Field(head + data, number, value, -1)
        elif kind == LENGTH:
            n_bytes, data = stream.varint()
            if stream.at + n_bytes > end:
                raise WireError(f"field {number} is longer than what it is in")
            yield Field(head + data, number, 0, n_bytes)
        elif kind in _FIXED:
            yield Field(head + stream.read(_FIXED[kind]), number, 0, -1)
        else:
            raise WireError(f"field {number} has wire type {kind}")
    if stream.at != end:
        raise WireError("a field is longer than what it is in")


def tag(field: int, n_bytes: int) -> bytes:
    """What stands before a value of ``n_bytes``."""
    return varint(field << 3 | LENGTH) + varint(n_bytes)


def record_bytes(field: int, n_bytes: int) -> int:
    """Length of a field with a value of ``n_bytes``."""
    return len(tag(field, n_bytes)) + n_bytes


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
