"""Fixtures every test may use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


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
