"""NVIDIA's run-time compiler, which needs no GPU, driver or toolkit: the library in the wheel.

Source: the NVRTC documentation, for every function and option named here.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tcfuse.errors import ToolchainError

WHEELS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
MISSING = "NVRTC, which compiles CUDA C, is not installed; pip install 'tcfuse[cuda]'"
LOG_LINES = 3
_TIMES = re.compile(r"^.*Compile time = .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Compilation:
    """What NVRTC makes of one text for one architecture.

    Attributes:
        cubin: An ELF file with machine code.
        ptx: The assembly that the cubin was made from.
        log: What it printed; with ``--ptxas-options=-v`` the registers of each kernel, but
            never times, so that the same text gives the same log.
    """

    cubin: bytes
    ptx: str
    log: str


@dataclass(frozen=True, slots=True, eq=False)
class Nvrtc:
    """A loaded NVRTC; its methods may be called by several threads at the same time.

    Attributes:
        version: Of the wheel, part of every cache key.
        archs: Numbers of the architectures it compiles for, 90 for ``sm_90``, ascending.
    """

    library: ctypes.CDLL
    version: str
    archs: tuple[int, ...]

    @classmethod
    def load(cls, path: Path, version: str) -> Nvrtc:
        """Load ``libnvrtc.so.*``.

        Raises:
            ToolchainError: It cannot be loaded.
        """
        try:
            # Some wheels' libraries do not look for their other half beside themselves.
            for builtins in sorted(path.parent.glob("libnvrtc-builtins.so.*")):
                ctypes.CDLL(str(builtins))
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ToolchainError(f"NVRTC cannot be loaded: {error}") from error
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        count = ctypes.c_int()
        _check(library, library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        archs = (ctypes.c_int * count.value)()
        _check(library, library.nvrtcGetSupportedArchs(archs))
        return cls(library, version, tuple(sorted(archs)))

    def __str__(self) -> str:
        return f"NVRTC {self.version}"

    def compile(
        self, name: str, text: str, headers: Sequence[tuple[str, str]], flags: Sequence[str]
    ) -> Compilation:
        """Compile a text.

        Args:
            name: What messages call it.
            text: CUDA C++.
            headers: Name and text of each file that it may include.
            flags: ``--gpu-architecture=sm_90`` is one of them.

        Raises:
            ToolchainError: It does not compile; the sentence has the log's first lines, and
                ``output`` all of it.
        """
        program = ctypes.c_void_p()
        names = _strings([header for header, _ in headers])
        texts = _strings([content for _, content in headers])
        status = self.library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), name.encode(), len(headers), texts, names
        )
        _check(self.library, status)
        try:
            status = self.library.nvrtcCompileProgram(program, len(flags), _strings(flags))
            log = self._output(program, "ProgramLog").decode(errors="replace")
            if status:
                raise ToolchainError(
                    f"{name} does not compile: {_first_lines(log, self._error(status))}",
                    " ".join(("nvrtc", *flags, name)),
                    log,
                )
            ptx = self._output(program, "PTX").decode()
            return Compilation(self._output(program, "CUBIN"), ptx, _TIMES.sub("", log))
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))

    def _output(self, program: ctypes.c_void_p, what: str) -> bytes:
        """One result of a program; texts without the zero byte that ends them."""
        size = ctypes.c_size_t()
        status = getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        _check(self.library, status)
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        _check(self.library, getattr(self.library, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw[: size.value] if what == "CUBIN" else buffer.value

    def _error(self, status: int) -> str:
        return str(self.library.nvrtcGetErrorString(status).decode())


@functools.cache
def find_nvrtc() -> Nvrtc:
    """NVRTC from NVIDIA's wheels, 12.x or 13.x; loaded once a process.

    Raises:
        ToolchainError: It is not installed, or cannot be loaded.
    """
    path, version = locate()
    return Nvrtc.load(path, version)


def locate() -> tuple[Path, str]:
    """Where NVRTC lies, and its version; nothing is loaded.

    Raises:
        ToolchainError: It is not installed.
    """
    for wheel in WHEELS:
        try:
            distribution = metadata.distribution(wheel)
        except metadata.PackageNotFoundError:
            continue
        for file in distribution.files or ():
            path = Path(str(file.locate()))
            if path.name.startswith("libnvrtc.so.") and path.is_file():
                return path, distribution.version
    raise ToolchainError(MISSING)


def _check(library: ctypes.CDLL, status: int) -> None:
    """Raise ``ToolchainError`` unless ``status`` says that all went well."""
    if status:
        raise ToolchainError(f"NVRTC failed: {library.nvrtcGetErrorString(status).decode()}")


def _strings(texts: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def _first_lines(log: str, otherwise: str) -> str:
    """The beginning of a log, for a sentence."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return " ".join(lines[:LOG_LINES]) or otherwise
