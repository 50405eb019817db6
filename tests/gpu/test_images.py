"""Which image a device gets."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tcfuse.errors import DeviceError
from tcfuse.gpu.images import choose


@dataclass(frozen=True)
class Image:
    arch: str
    kind: str = "cubin"
    data: bytes = b""


IMAGES = [
    *(Image(arch) for arch in ("sm_80", "sm_86", "sm_90", "sm_100", "sm_120")),
    Image("sm_80", "ptx"),
    Image("sm_90", "ptx"),
]


@pytest.mark.parametrize(
    ("device", "arch", "kind"),
    [
        ("sm_80", "sm_80", "cubin"),
        ("sm_87", "sm_86", "cubin"),
        ("sm_89", "sm_86", "cubin"),
        ("sm_90", "sm_90", "cubin"),
        ("sm_103", "sm_100", "cubin"),
        ("sm_110", "sm_90", "ptx"),
        ("sm_121", "sm_120", "cubin"),
    ],
)
def test_the_nearest_that_runs(device: str, arch: str, kind: str) -> None:
    assert choose(IMAGES, device) == Image(arch, kind)
    assert choose(IMAGES[::-1], device) == Image(arch, kind)


def test_what_is_there_is_named() -> None:
    with pytest.raises(DeviceError, match=r"no image for sm_75; there are sm_80 \(cubin\)"):
        choose([Image("sm_80")], "sm_75")
