"""The pycuda backend where pycuda cannot be used: its errors are ours."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tcfuse.errors import DeviceError
from tcfuse.gpu import pycuda_backend


class Error(Exception):
    """Stands for ``pycuda.driver.Error``."""


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module in the place of ``pycuda.driver``."""
    package, driver = ModuleType("pycuda"), ModuleType("pycuda.driver")
    package.driver = driver
    driver.Error = Error
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    pycuda_backend.driver.cache_clear()
    yield driver
    pycuda_backend.driver.cache_clear()


def test_its_errors_are_ours(stand_in: ModuleType) -> None:
    def init() -> None:
        raise Error("cuInit failed: no device")

    stand_in.init = init
    with pytest.raises(DeviceError, match="cuInit failed: no device"):
        pycuda_backend.PycudaDevice()


def test_a_missing_library_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    pycuda_backend.driver.cache_clear()
    with pytest.raises(DeviceError, match="pycuda cannot be used"):
        pycuda_backend.PycudaDevice()
    pycuda_backend.driver.cache_clear()
