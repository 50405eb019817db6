"""The checks, runnable by hand: ``nox -s lint types unit``."""

from __future__ import annotations

import nox

nox.options.sessions = ["lint", "types", "unit"]
nox.options.reuse_existing_virtualenvs = True
CODE = ("tcfuse", "op_library", "models", "scripts", "tests", "noxfile.py")


@nox.session
def lint(session: nox.Session) -> None:
    """Style, formatting, the import graph, and the shape of the whole."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", *CODE)
    session.run("ruff", "format", "--check", *CODE)
    session.run("lint-imports")
    session.run("pytest", "-q", "tests/test_architecture.py")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly."""
    session.install("-e", ".[dev]")
    session.run("mypy", "tcfuse", "op_library")


@nox.session(python=["3.11", "3.12", "3.13"])
def unit(session: nox.Session) -> None:
    """What needs neither a compiler nor ONNX Runtime."""
    session.install("-e", ".[dev]")
    session.run("pytest", "-q", "-n", "2", "-m", "not compiler and not ort", *session.posargs)


@nox.session
def cpu(session: nox.Session) -> None:
    """Everything, twice: with an empty cache, then with the one the first run left."""
    session.install("-e", ".[dev]")
    environment = {"TCFUSE_CACHE_DIR": session.create_tmp()}
    for _ in range(2):
        session.run("pytest", "-q", "-n", "2", *session.posargs, env=environment)
