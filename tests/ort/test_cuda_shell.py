"""Runs ``cuda_shell_cases.py`` in a process of its own.

A libcuda that a process has loaded stays, and whatever looks for one later would meet the fake.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tcfuse.debug import cache_dir

CASES = Path(__file__).with_name("cuda_shell_cases.py")


@pytest.mark.compiler
@pytest.mark.ort
def test_the_operator_shell_for_gpus() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)]
    variables = {**os.environ, "TCFUSE_CACHE_DIR": str(cache_dir())}
    root = CASES.parents[2]
    done = subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
