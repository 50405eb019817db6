"""Where the tensors of a measurement lie."""

import numpy as np

from tcfuse.tuning.cases import make_cases, staggered
from tcfuse.tuning.messages import Setup
from tests.tuning.fakes import SUBJECT

PAGE, LINE = 4096, 64


def places(turn: int) -> list[int]:
    return [staggered(1000, k, turn).ctypes.data % PAGE for k in range(4)]


def test_neighbours_lie_on_lines_of_their_own_and_elsewhere_in_each_turn():
    turns = [places(turn) for turn in range(4)]
    for found in turns:
        assert not any(place % LINE for place in found)
        assert len(set(found)) == len(found)
    apart = [(found[1] - found[0]) % PAGE for found in turns]
    assert len(set(apart)) == len(turns)
    assert len({found[0] for found in turns}) == len(turns)


def test_inputs_are_the_same_in_each_turn():
    setup = Setup(SUBJECT.definition, SUBJECT.interface, SUBJECT.sizes, 1, 10**6)
    _, (case, *_) = make_cases(setup)
    case.place()
    assert case.moved(0) is case.plain
    for turn in (1, 2, 3):
        for moved, plain in zip(case.moved(turn), case.plain, strict=True):
            assert moved.ctypes.data % PAGE != plain.ctypes.data % PAGE
            np.testing.assert_array_equal(moved, plain)
