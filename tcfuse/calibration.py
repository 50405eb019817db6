"""The rates of this machine, where ``tcfuse calibrate`` has measured them.

They are kept apart from kernels and never part of a kernel's key: a calibration changes which
regions are tried, not how one is compiled.
"""

from __future__ import annotations

import importlib.metadata

from tcfuse.errors import InputError
from tcfuse.graph.machine import MACHINE, Machine
from tcfuse.processor import processor
from tcfuse.store import Store, key_of

KIND = "calibrations"
FORMAT = 1
"""Goes up when a rate that was measured means something else."""


def calibrated(store: Store) -> Machine:
    """The measured rates of this machine; the built-in table where there are none."""
    record = store.get(KIND, _key())
    if record is None:
        return MACHINE
    try:
        return Machine.from_json(record)
    except InputError:
        return MACHINE


def keep(store: Store, machine: Machine) -> None:
    """Plan with these rates from now on."""
    store.put(KIND, _key(), machine.to_json())


def forget(store: Store) -> None:
    """Plan with the built-in table again."""
    store.path(KIND, _key()).unlink(missing_ok=True)


def _key() -> str:
    """What rates depend on: the processor, and the versions of what was measured."""
    versions = (_version(package) for package in ("onnxruntime", "tcfuse"))
    return key_of(processor(), *versions, FORMAT)


def _version(package: str) -> str:
    """An installed version; found without importing, which is slow."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
