"""Contenders timed in turn, for as long as the figures still decide something.

They run forwards and backwards (A B C, C B A, ...), so that slow drift of the machine cancels
in the ratios within a round.  One that is far behind the incumbent is given up after a few
rounds; one that may be the new incumbent gets all of them, so that noise does not promote it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MOST_CALLS = 500  # in a block
LOOKED = 4  # rounds between two decisions: noise gets fewer chances to be believed


@dataclass(frozen=True, slots=True)
class Race:
    """How long contenders are timed.

    Attributes:
        budget_s: Seconds for all of them; the first rounds are run in any case, and what may
            be promoted gets twice as many.
        block_s: Seconds of calls in a row; many short blocks tell more than a few long ones.
        least: Rounds before anything is decided, but that a contender is hopeless.
        most: Rounds of those that are near the incumbent.
        promoted: Rounds of those that seem to be faster than it.
        hopeless: How many times slower than the incumbent ends a race at once.
        behind: How many times slower than it ends a race after ``least`` rounds.
    """

    budget_s: float = 0.2
    block_s: float = 0.0003
    least: int = 12
    most: int = 80
    promoted: int = 240
    hopeless: float = 1.5
    behind: float = 1.08


_NEVER = 1e9
CONFIRM = Race(1.0, 0.0003, 5, 300, 300, _NEVER, _NEVER)
"""For the few that may be chosen, in each of ``RUNS`` processes."""

RUNS = 4  # where memory lies is worth some percent, up to twenty; each has it elsewhere


def race(
    calls: Sequence[Callable[[], object]],
    rules: Race,
    clock: Callable[[], float] = time.thread_time,
    wall: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Seconds a call of each contender, by round.

    Args:
        calls: The contenders; the last is compared with the one before it to see whether to
            go on.
        rules: When to stop.
        clock: Measures them.
        wall: Measures what has been spent.
    """
    begin = wall()
    counts = [_calls(_seconds(call, clock), rules) for call in calls]
    times: list[list[float]] = [[] for _ in calls]
    order = list(range(len(calls)))
    turn = 0
    while not _decided(times, rules, wall() - begin):
        for k in order if turn % 2 == 0 else order[::-1]:
            times[k].append(_block(calls[k], counts[k], clock))
        turn += 1
    return times


def is_slow(times: Sequence[Sequence[float]], rules: Race) -> bool:
    """Whether the last contender was given up as hopeless."""
    return len(times[-1]) < rules.least and _always(times, rules.hopeless)


def _seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """A call when its memory is in the caches; the first one fills them."""
    call()
    start = clock()
    call()
    return clock() - start


def _calls(seconds: float, rules: Race) -> int:
    return max(1, min(MOST_CALLS, round(rules.block_s / max(seconds, 1e-7))))


def _block(call: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    if count > 1:
        call()  # brings its memory back into the caches
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count


def _behind(times: Sequence[Sequence[float]]) -> list[float]:
    """How many times slower the last contender is than the one before it, by round."""
    pairs = zip(times[-1], times[-2], strict=True)
    return [ours / max(theirs, 1e-12) for ours, theirs in pairs]


def _always(times: Sequence[Sequence[float]], ratio: float) -> bool:
    """Whether it is that far behind in every round, which is not noise."""
    return min(_behind(times)) > ratio


def _decided(times: Sequence[Sequence[float]], rules: Race, spent_s: float) -> bool:
    rounds = len(times[-1])
    if rounds < 2:
        return False
    if rounds < rules.least:
        return _always(times, rules.hopeless) or (rounds >= 3 and spent_s > rules.budget_s)
    behind = sorted(_behind(times))
    if behind[rounds // 2] < 1.0:
        return rounds >= rules.promoted or spent_s > 2 * rules.budget_s
    if rounds >= rules.most or spent_s > rules.budget_s:
        return True
    if rounds % LOOKED:
        return False
    # In three rounds of four at least, lest a burst of noise decides.
    return behind[rounds // 2] > rules.behind and behind[rounds // 4] > (1 + rules.behind) / 2
