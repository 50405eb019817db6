"""Code for GPUs as an object file, and as rows of the table."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

from tcfuse.errors import ToolchainError
from tcfuse.ort.images import ALIGNMENT, ImageData
from tcfuse.ort.library import shell_unit
from tcfuse.ort.table_cuda import image_row
from tcfuse.targets.toolchain import Toolchain

ACCESS = """
extern __attribute__((visibility("hidden"))) const unsigned char tcf_images[];
__attribute__((visibility("default"))) const unsigned char *images(void) { return tcf_images; }
"""
PT_GNU_STACK, PF_X = 0x6474E551, 1


@dataclass(frozen=True)
class Image:
    arch: str
    kind: str
    data: bytes


def test_equal_images_are_kept_once_and_text_ends() -> None:
    images = [Image("sm_80", "cubin", b"one"), Image("sm_90", "ptx", b"two")]
    found = ImageData.of([*images, Image("sm_86", "cubin", b"one")])
    assert found.offsets == {b"one": 0, b"two": ALIGNMENT}
    assert found.data == b"one".ljust(ALIGNMENT, b"\0") + b"two\0"


@pytest.mark.parametrize(
    ("arch", "kind", "row"),
    [
        ("sm_90", "cubin", "{9, 0, 0, 0, tcf_images + 64}"),
        ("sm_90a", "cubin", "{9, 0, 0, 1, tcf_images + 64}"),
        ("sm_100f", "cubin", "{10, 0, 0, 0, tcf_images + 64}"),
        ("compute_121", "ptx", "{12, 1, 1, 0, tcf_images + 64}"),
    ],
)
def test_rows(arch: str, kind: str, row: str) -> None:
    assert image_row(Image(arch, kind, b""), 64) == row


def test_objects_of_unknown_machines_are_refused() -> None:
    with pytest.raises(ToolchainError, match="libraries for GPUs cannot be made for riscv64"):
        ImageData({}, b"x").object("riscv64")


@pytest.mark.compiler
def test_a_linker_takes_the_object(tmp_path: Path) -> None:
    toolchain = Toolchain.default()
    data = ImageData.of([Image("sm_90", "cubin", bytes(range(256)) * 40)])
    (access,) = toolchain.compile([shell_unit("access.c", ACCESS)])
    toolchain.link([access, data.object()], tmp_path / "images.so")
    library = ctypes.CDLL(str(tmp_path / "images.so"))
    library.images.restype = ctypes.c_void_p
    address = library.images()
    assert address % ALIGNMENT == 0
    assert ctypes.string_at(address, len(data.data)) == data.data
    with pytest.raises(AttributeError):
        _ = library.tcf_images  # hidden
    assert not stack_is_executable((tmp_path / "images.so").read_bytes())


def stack_is_executable(elf: bytes) -> bool:
    """What the loader reads from the program headers of a shared library."""
    start, size, count = *struct.unpack_from("<Q", elf, 32), *struct.unpack_from("<HH", elf, 54)
    headers = (struct.unpack_from("<II", elf, start + k * size) for k in range(count))
    return next((flags & PF_X != 0 for kind, flags in headers if kind == PT_GNU_STACK), True)
