"""A device and a compiler for tests of ``scripts/gpu``: the emulator behind a fake libcuda."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.gpu.workbench import Settings, Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """What ``--dry-run`` has."""
    settings = Settings(dry_run=True, shared=tmp_path, models=tmp_path)
    made = Workbench.open(settings)
    yield made
    made.device.close()
