"""Which of several ways to compute something is faster on a GPU, by its own clock.

A block of calls lies between two events; contenders take turns, forwards and backwards, so that
what changes slowly (clocks, temperature, neighbours) cancels in the ratios of one round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from tcfuse.gpu.device import Device

Block = Callable[[int], float]
"""Makes that many calls and returns the seconds that they took together on the device."""

BLOCK_SECONDS = 0.02
MOST_CALLS = 1000
GRAPH_CALLS = 20  # in one graph, so that starting it costs little of what is measured


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one call, a figure for each round."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Seconds of a call."""
        return median(self.rounds)

    @property
    def spread(self) -> float:
        """Range of the middle half of the rounds, relative to the median."""
        ordered = sorted(self.rounds)
        quarter = len(ordered) // 4
        low, high = ordered[quarter], ordered[len(ordered) - 1 - quarter]
        return (high - low) / self.median if self.median else 0.0


def interleave(
    blocks: Mapping[str, Block], rounds: int, block_seconds: float = BLOCK_SECONDS
) -> dict[str, Times]:
    """Time contenders in turn.

    Args:
        blocks: The contenders.
        rounds: Blocks of each.
        block_seconds: How long a block takes, about.
    """
    calls = {name: _calls_in_block(block, block_seconds) for name, block in blocks.items()}
    times: dict[str, list[float]] = {name: [] for name in blocks}
    names = list(blocks)
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else names[::-1]:
            blocks[name](1)  # brings its memory back into the caches
            times[name].append(blocks[name](calls[name]) / calls[name])
    return {name: Times(tuple(found)) for name, found in times.items()}


def _calls_in_block(block: Block, block_seconds: float) -> int:
    block(1)
    return max(1, min(MOST_CALLS, int(block_seconds / max(block(1), 1e-7))))


def launched(device: Device, enqueue: Callable[[], None]) -> Block:
    """Calls launched one by one: what a short kernel takes is the time to launch it."""

    def block(calls: int) -> float:
        begin = device.record()
        for _ in range(calls):
            enqueue()
        return device.seconds(begin, device.record())

    return block


@contextmanager
def captured(
    device: Device, enqueue: Callable[[], None], calls_in_graph: int = GRAPH_CALLS
) -> Iterator[Block]:
    """Calls in a CUDA graph: the time of the kernels and of the gaps between them.

    Blocks are rounded up to whole graphs, and their time down to the calls asked for.
    """

    def work() -> None:
        for _ in range(calls_in_graph):
            enqueue()

    graph = device.capture(work)

    def block(calls: int) -> float:
        replays = -(-calls // calls_in_graph)
        begin = device.record()
        for _ in range(replays):
            device.replay(graph)
        return device.seconds(begin, device.record()) * calls / (replays * calls_in_graph)

    try:
        yield block
    finally:
        device.drop(graph)
