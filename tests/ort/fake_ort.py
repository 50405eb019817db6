"""Operators of a library called as ONNX Runtime calls them, by ``fake_ort.c``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tcfuse.ort.library import shell_unit
from tcfuse.targets.toolchain import Toolchain

HERE = Path(__file__).parent
MOST_RANK = 8
TEXT = 640
SCRATCH_BYTES = 1 << 20


class Value(ctypes.Structure):
    _fields_ = [
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_int64 * MOST_RANK),
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int),
    ]


class Context(ctypes.Structure):
    _fields_ = [
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
        ("scratch_bytes", ctypes.c_int64),
        ("asked_by_stream", ctypes.c_int64),
        ("live", ctypes.c_int64),
    ]


class Options(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_char_p),
        ("value", ctypes.c_char_p),
        ("domain", ctypes.c_void_p),
    ]


class OrtError(Exception):
    """A status that an operator returned."""


def build(folder: Path, toolchain: Toolchain) -> ctypes.CDLL:
    """The fake as a library of this process."""
    text = (HERE / "fake_ort.c").read_text()
    toolchain.link(toolchain.compile([shell_unit("fake_ort.c", text)]), folder / "fake_ort.so")
    fake = ctypes.CDLL(str(folder / "fake_ort.so"))
    fake.fake_word.restype = ctypes.c_char_p
    return fake


@dataclass
class Session:
    """The operators that a library registers for one session.

    Args:
        minor: Version of the runtime, 32 or 17.
        entry: A configuration entry of the session.
    """

    fake: ctypes.CDLL
    library: Path
    minor: int = 32
    entry: tuple[str, str] | None = None
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        if self.entry is not None:
            self.options.key, self.options.value = (word.encode() for word in self.entry)
        register = ctypes.CDLL(str(self.library)).RegisterCustomOps
        self._check(self.fake.fake_register, register, self.minor, ctypes.byref(self.options))

    def operators(self) -> list[tuple[str, str]]:
        """Name and execution provider of each, the CPU's as an empty text."""
        word = self.fake.fake_word
        options = ctypes.byref(self.options)
        return [
            ((word(options, k, 0) or b"").decode(), (word(options, k, 1) or b"").decode())
            for k in range(self.fake.fake_count(options))
        ]

    def node(self, name: str, provider: str = "CUDAExecutionProvider", device: int = 0) -> Node:
        """A node of the session.

        Raises:
            OrtError: It cannot be made.
        """
        k = self.operators().index((name, provider))
        kernel = ctypes.c_void_p()
        options = ctypes.byref(self.options)
        self._check(self.fake.fake_create, options, k, device, ctypes.byref(kernel))
        return Node(self, k, kernel)

    def logged(self) -> tuple[int, str]:
        """Number of messages so far, and the last one."""
        last = ctypes.create_string_buffer(TEXT)
        return self.fake.fake_logs(last), last.value.decode()

    def _check(self, call: object, *arguments: object) -> None:
        message = ctypes.create_string_buffer(TEXT)
        if call(*arguments, message):  # type: ignore[operator]
            raise OrtError(message.value.decode())


@dataclass
class Node:
    """A node; ``context`` is that of its last run."""

    session: Session
    number: int
    kernel: ctypes.c_void_p
    context: Context = field(default_factory=Context)

    def run(
        self,
        inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray],
        stream: int = 0,
    ) -> list[tuple[int, ...]]:
        """Run on arrays as they lie in memory; the shapes that the outputs got.

        Raises:
            OrtError: The operator says so.
        """
        given = (Value * max(len(inputs), 1))(*map(value_of, inputs))
        made = (Value * len(outputs))(*map(value_of, outputs))
        scratch = np.zeros(SCRATCH_BYTES, np.uint8)
        self.context = Context(
            ctypes.addressof(given), ctypes.addressof(made), stream, scratch.ctypes.data
        )
        options, context = ctypes.byref(self.session.options), ctypes.byref(self.context)
        compute = self.session.fake.fake_compute
        self.session._check(compute, options, self.number, self.kernel, context)
        return [tuple(value.dims[: value.rank]) for value in made]

    def release(self) -> None:
        """What the end of its session does."""
        options = ctypes.byref(self.session.options)
        self.session.fake.fake_destroy(options, self.number, self.kernel)


def value_of(array: np.ndarray) -> Value:
    dims = (ctypes.c_int64 * MOST_RANK)(*array.shape)
    return Value(array.ndim, dims, array.ctypes.data, 0)
