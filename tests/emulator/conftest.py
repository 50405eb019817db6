"""Programs that several tests run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tcfuse.emulator import Program
from tcfuse.errors import ToolchainError
from tests.emulator.kernels import SYMBOLS, TEXT


@pytest.fixture(scope="session")
def compile_cuda(private_cache: object) -> Callable[..., Program]:
    """``compile_cuda(text, symbols, trace)``: the program, compiled once."""

    @cache
    def build(text: str, symbols: tuple[str, ...], trace: bool = True) -> Program:
        try:
            return Program.build(text, symbols, trace=trace)
        except ToolchainError as error:
            if error.output:
                raise
            pytest.skip(str(error))

    return build


@pytest.fixture(params=[False, True], ids=["fast", "traced"])
def kernels(request: pytest.FixtureRequest, compile_cuda: Callable[..., Program]) -> Program:
    """The kernels that are right, in both builds."""
    return compile_cuda(TEXT, tuple(SYMBOLS), request.param)
