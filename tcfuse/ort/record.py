"""Kernels and signatures as JSON, for the cache and the manifest."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeAlias

from tcfuse.errors import InputError
from tcfuse.targets.base import (
    Compilation,
    CudaPhase,
    CudaSource,
    Interface,
    KernelSource,
    Launch,
    Phase,
    Port,
)
from tcfuse.types import DType, TensorType

Json: TypeAlias = dict[str, Any]


def interface_to_json(interface: Interface) -> Json:
    """A signature as JSON; ``interface_from_json`` reads it back."""
    return {
        "inputs": [_port_to_json(port) for port in interface.inputs],
        "outputs": [_port_to_json(port) for port in interface.outputs],
        "sizes": list(interface.sizes),
        "derived": [list(pair) for pair in interface.derived],
        "checks": [list(pair) for pair in interface.checks],
        "facts": list(interface.facts),
    }


def interface_from_json(record: Json) -> Interface:
    """The signature a record describes.

    Raises:
        InputError: The record is damaged.
    """
    try:
        return Interface(
            tuple(_port_from_json(port) for port in record["inputs"]),
            tuple(_port_from_json(port) for port in record["outputs"]),
            tuple(record["sizes"]),
            tuple((a, b) for a, b in record["derived"]),
            tuple((a, b) for a, b in record["checks"]),
            tuple(record["facts"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a kernel's signature cannot be read: {error!r}") from None


def source_to_json(source: KernelSource) -> Json:
    """A kernel's source as JSON; ``source_from_json`` reads it back."""
    return {
        "name": source.name,
        "text": source.text,
        "interface": interface_to_json(source.interface),
        "phases": [[phase.symbol, phase.extent, phase.cost] for phase in source.phases],
        "shared_bytes": source.shared_bytes,
        "local_bytes": source.local_bytes,
        "tc": source.tc,
        "compilation": asdict(source.compilation),
    }


def source_from_json(record: Json) -> KernelSource:
    """The kernel's source a record describes."""
    return KernelSource(
        name=record["name"],
        text=record["text"],
        interface=interface_from_json(record["interface"]),
        phases=tuple(Phase(*phase) for phase in record["phases"]),
        shared_bytes=record["shared_bytes"],
        local_bytes=record["local_bytes"],
        tc=record["tc"],
        compilation=Compilation(**record["compilation"]),
    )


def cuda_source_to_json(source: CudaSource) -> Json:
    """A kernel for GPUs as JSON; ``cuda_source_from_json`` reads it back."""
    return {
        "name": source.name,
        "text": source.text,
        "interface": interface_to_json(source.interface),
        "phases": [[asdict(launch) for launch in phase.launches] for phase in source.phases],
        "scratch_bytes": source.scratch_bytes,
        "tc": source.tc,
        "contract": source.contract,
    }


def cuda_source_from_json(record: Json) -> CudaSource:
    """The kernel for GPUs that a record describes."""
    phases = (tuple(Launch(**launch) for launch in launches) for launches in record["phases"])
    return CudaSource(
        name=record["name"],
        text=record["text"],
        interface=interface_from_json(record["interface"]),
        phases=tuple(CudaPhase(launches) for launches in phases),
        scratch_bytes=record["scratch_bytes"],
        tc=record["tc"],
        contract=record["contract"],
    )


def _port_to_json(port: Port) -> Json:
    return {"name": port.name, "type": port.type.dtype.tc, "shape": list(port.type.shape)}


def _port_from_json(record: Json) -> Port:
    dtype = DType.from_tc(record["type"])
    if dtype is None:
        raise ValueError(f"no element type {record['type']!r}")
    return Port(record["name"], TensorType(dtype, tuple(record["shape"])))
