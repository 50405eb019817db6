"""How a CUDA kernel is launched for given input shapes, as the operator shell decides it.

Sizes are bound, checked and derived as the shell's table does (``ort.table``, ``tcf_sizes.h``);
here this serves the emulator and launches outside ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcfuse.errors import InputError
from tcfuse.targets.base import CudaPhase, CudaSource, Interface, Launch
from tcfuse.targets.c_expression import evaluate
from tcfuse.targets.places import Places, dimensions, origins

MOST_BLOCKS = (1 << 31) - 1  # CUDA C++ Programming Guide, technical specifications: gridDim.x
MOST_SCRATCH = 1 << 48  # bytes
SHARED_LIMIT = 48 << 10  # bytes that a block has without asking for more
MULTIPROCESSORS = 132  # of an H100 or H200
ALIGNMENT = 256  # bytes; what cuMemAlloc promises


@dataclass(frozen=True, slots=True)
class Step:
    """One launch, with numbers; grids and blocks have one dimension."""

    symbol: str
    grid: int
    block: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class CudaPlan:
    """What a call with certain input shapes needs.

    Attributes:
        sizes: Value of each size name, in the order in which kernels receive them.
        output_shapes: Of the outputs, in order.
        scratch_bytes: Global memory for the whole call.
        steps: To launch one after the other; phases without work have none.
    """

    sizes: dict[str, int]
    output_shapes: tuple[tuple[int, ...], ...]
    scratch_bytes: int
    steps: tuple[Step, ...]


def plan(
    source: CudaSource,
    shapes: Sequence[Sequence[int]],
    *,
    alignment: int = ALIGNMENT,
    shared_limit: int = SHARED_LIMIT,
    multiprocessors: int = MULTIPROCESSORS,
) -> CudaPlan:
    """The launches of ``source`` for inputs of ``shapes``.

    Args:
        source: The kernel.
        shapes: Of the inputs, in order.
        alignment: A power of two, in bytes, that divides the address of every tensor.
        shared_limit: Bytes of shared memory that a block may ask for.
        multiprocessors: Of the device.

    Raises:
        InputError: The kernel is not made for these shapes.
    """
    sizes = bind(source.interface, shapes)
    scratch = evaluate(source.scratch_bytes, sizes)
    if scratch >= MOST_SCRATCH:
        raise InputError("its temporaries take more memory than there is")
    outputs = tuple(
        tuple(evaluate(size, sizes) for size in port.type.shape)
        for port in source.interface.outputs
    )
    if any(n < 0 for shape in outputs for n in shape):
        raise InputError("an output would have a negative size")
    known = sizes | {"tcf_alignment": alignment, "tcf_shared_limit": shared_limit}
    steps = []
    for phase in source.phases:
        launch = _chosen(phase, known)
        grid = min(evaluate(launch.grid, sizes), MOST_BLOCKS)
        if launch.blocks_per_multiprocessor:
            grid = min(grid, launch.blocks_per_multiprocessor * multiprocessors)
        if grid > 0:
            shared = evaluate(launch.shared_bytes, sizes)
            steps.append(Step(launch.symbol, grid, launch.block, shared))
    return CudaPlan(sizes, outputs, scratch, tuple(steps))


def bind(interface: Interface, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    """The value of every size, in the order of ``interface.sizes``.

    Raises:
        InputError: The shapes do not fit each other or the interface; the text is what the
            operator says where its inputs are known by name.
    """
    _check_ranks(interface, shapes)
    dims = [n for shape in shapes for n in shape]
    read = origins(interface)
    found = {name: dims[position] for name, position in read.items()}
    for name, expression in interface.derived:
        found[name] = evaluate(expression, found)
    places = Places(interface, read, ports=True)
    for position, (_, _, size) in enumerate(dimensions(interface.inputs)):
        expected = evaluate(size, found)
        if dims[position] != expected:
            rule = places.rule(size)
            why = "" if rule is None else f"equals {rule}, which "
            text = f"{places.dimensions[position]} is {dims[position]}; the model says it"
            raise InputError(f"{text} {why}is {expected}")
    for condition, sentence in interface.checks:
        if not evaluate(condition, found):
            raise InputError(sentence)
    return {name: found[name] for name in interface.sizes}


def _check_ranks(interface: Interface, shapes: Sequence[Sequence[int]]) -> None:
    if len(shapes) != len(interface.inputs):
        n = len(interface.inputs)
        raise InputError(f"the kernel has {n} inputs, but {len(shapes)} are given")
    for port, shape in zip(interface.inputs, shapes, strict=True):
        if len(shape) != port.type.rank:
            rank = port.type.rank
            raise InputError(f"{port.name!r} has {rank} dimensions, but {len(shape)} are given")


def _chosen(phase: CudaPhase, known: dict[str, int]) -> Launch:
    """The first launch whose condition holds; the last one's always does."""
    for launch in phase.launches[:-1]:
        if evaluate(launch.when, known):
            return launch
    return phase.launches[-1]
