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
    *(Image(arch) for arch in ("sm_80", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_120")),
    Image("sm_80", "ptx"),
    Image("compute_90", "ptx"),
]


@pytest.mark.parametrize(
    ("device", "arch", "kind"),
    [
        ("sm_80", "sm_80", "cubin"),
        ("sm_87", "sm_86", "cubin"),
        ("sm_89", "sm_86", "cubin"),
        ("sm_90", "sm_90", "cubin"),
        ("sm_103", "sm_100", "cubin"),
        ("sm_110", "compute_90", "ptx"),
        ("sm_121", "sm_120", "cubin"),
    ],
)
def test_the_nearest_that_runs(device: str, arch: str, kind: str) -> None:
    images = [image for image in IMAGES if image.arch != "sm_90a"]
    assert choose(images, device) == Image(arch, kind)
    assert choose(images[::-1], device) == Image(arch, kind)


def test_an_image_for_one_architecture_runs_there_only() -> None:
    assert choose([Image("sm_90a")], "sm_90").arch == "sm_90a"
    with pytest.raises(DeviceError):
        choose([Image("sm_100a")], "sm_103")


def test_what_is_there_is_named() -> None:
    with pytest.raises(DeviceError, match=r"no image for sm_75; there are sm_80 \(cubin\)"):
        choose([Image("sm_80")], "sm_75")
