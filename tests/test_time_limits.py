"""A test that hangs fails, and says where; the other tests run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests import conftest
from tests.conftest import *

conftest.GRACE_S = 4
"""
TESTS = """
import signal
import time


def test_before():
    pass


def test_waits_in_python():
    time.sleep(60)


def test_waits_where_no_signal_comes():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(60)


def test_after():
    pass
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_what_hangs_is_named_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--timeout", "4"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=200,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 1, told
    assert "Timeout (0:00:08)!" in done.stderr  # the stacks of a process that was ended
    assert "in test_waits_where_no_signal_comes" in done.stderr
    assert "test_waits_in_python - Failed: Timeout (>4.0s)" in told
    assert "crashed while running 'test_some.py::test_waits_where_no_signal_comes'" in told
    assert "2 failed, 2 passed" in told
