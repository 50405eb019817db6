"""Fixtures every test may use."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tcfuse import debug
from tcfuse.cli import main
from tcfuse.errors import ToolchainError
from tcfuse.targets.nvrtc_library import find_nvrtc

GOLDEN = Path(__file__).parent / "golden"

settings.register_profile("nightly", max_examples=2000, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")
    parser.addoption(
        "--all-cases",
        action="store_true",
        help="compile every ONNX node case and every program",
    )


STDERR = pytest.StashKey[int]()
GRACE_S = 60


def pytest_configure(config: pytest.Config) -> None:
    assert sys.__stderr__ is not None
    config.stash[STDERR] = os.dup(sys.__stderr__.fileno())  # tests have another in its place


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """End the process, with its stacks, when a test has gone on after its time was over.

    What hangs in C never comes back to Python, where the signal would make the test fail.  The
    other tests go to a new process then, and the report names the one that hung.
    """
    file = item.config.stash[STDERR]
    faulthandler.dump_traceback_later(settings.timeout + GRACE_S, exit=True, file=file)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer() -> None:
    faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that compile CUDA C where its compiler is not installed."""
    marked = [item for item in items if item.get_closest_marker("cuda_build")]
    if marked and (reason := _no_nvrtc()):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


def _no_nvrtc() -> str:
    """Why CUDA C cannot be compiled here; empty when it can."""
    try:
        find_nvrtc()
    except ToolchainError as error:
        return str(error)
    return ""


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[object, str], None]:
    """``golden(text, "tc")`` compares with ``golden/<test file>/<test name>.tc``."""
    here = Path(request.fspath).relative_to(Path(__file__).parent).with_suffix("")

    def check(actual: object, suffix: str) -> None:
        __tracebackhide__ = True
        path = GOLDEN / here / f"{request.node.name}.{suffix}"
        text = f"{actual}".strip() + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if not path.exists():
            pytest.fail(f"no {path}; look at the output and rerun with --update-golden")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def tcfuse(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run one command line: status, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return call


@pytest.fixture(autouse=True, scope="session")
def private_cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Path]:
    """Tests leave the user's cache alone; the workers of one run share theirs."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "tcfuse-cache"
    with pytest.MonkeyPatch.context() as patch:
        if "TCFUSE_CACHE_DIR" not in os.environ:
            patch.setenv("TCFUSE_CACHE_DIR", str(folder))
        debug.current.cache_clear()
        yield folder
    debug.current.cache_clear()
