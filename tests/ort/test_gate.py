"""What pays stays, what does not goes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from models.chain import build
from tcfuse.errors import OptionError
from tcfuse.graph.load import load_model
from tcfuse.ort.gate import gate
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses
from tcfuse.ort.stage import Stage
from tcfuse.ort.timing import Ratio, interleave
from tcfuse.trial import gate_from_json, gate_to_json
from tests.ort.handmade import RIGHT, Handmade, handmade

NAME = "double_relu_0"


def stage(made: Handmade, rows: int) -> Stage:
    return Stage(
        original=made.original,
        baseline=made.original,
        build=made.build,
        library=made.library,
        fused=made.subject.model,
        kernels={NAME: (made.subject.node, made.subject.interface)},
        guesses=({"x": (rows, 7)},),
        seconds=3.0,
    )


@pytest.mark.compiler
@pytest.mark.ort
class TestGate:
    def test_a_slow_kernel_is_given_back(self, tmp_path: Path):
        slow = "for (volatile int k = 0; k < 50; k = k + 1);"
        result = gate(stage(handmade(tmp_path, RIGHT, slow), 1000))
        assert result.kept == frozenset()
        assert "slower alone" in result.dropped[NAME]
        assert result.alone[NAME].value < 0.9

    def test_a_fast_kernel_stays(self, tmp_path: Path):
        result = gate(stage(handmade(tmp_path), 20_000))
        assert result.kept == {NAME}
        assert result.whole is not None
        assert result.whole.value > 1.0

    def test_a_model_that_cannot_run_is_judged_by_its_kernels(self, tmp_path: Path):
        given = stage(handmade(tmp_path), 100)
        result = gate(
            Stage(**{k: getattr(given, k) for k in given.__slots__} | {"guesses": ()})
        )
        assert "could not be run" in result.note
        assert NAME in result.alone
        assert result.whole is None

    def test_results_survive_the_store(self, tmp_path: Path):
        result = gate(stage(handmade(tmp_path), 100))
        assert gate_from_json(gate_to_json(result)) == result


def test_a_ratio_is_the_median_of_pairs():
    ratio = Ratio.paired([2.0, 4.0, 6.0], [1.0, 1.0, 2.0])
    assert (ratio.value, ratio.before_us) == (3.0, 4e6)


def test_contenders_take_turns():
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    times = interleave(calls, 2)
    assert [len(t) for t in times.values()] == [2, 2]
    assert "".join(dict.fromkeys("".join(order).replace("aa", "a").replace("bb", "b"))) == "ab"


def test_sizes_of_one_name_are_equal_and_wishes_go_first():
    model = load_model(build(n="N"))
    assert next(shape_guesses(model, Wishes())) == {"x": (1,)}
    assert next(shape_guesses(model, Wishes({"N": 9}))) == {"x": (9,)}
    assert next(shape_guesses(model, Wishes({}, {"x": (4,)}))) == {"x": (4,)}
    assert model_feeds(model, {"x": (4,)})["x"].shape == (4,)


@pytest.mark.parametrize(
    ("wishes", "complaint"),
    [
        (Wishes({"M": 1}), "no size 'M' in the model's inputs; size names are N"),
        (Wishes({}, {"z": (1,)}), "no input 'z'; inputs are x"),
    ],
)
def test_a_wish_for_what_is_not_there_is_refused(wishes: Wishes, complaint: str):
    with pytest.raises(OptionError, match=complaint):
        wishes.check(load_model(build()))


@pytest.mark.parametrize(("seconds", "n_calls"), [(0.06, 3), (0.03, 5)])
def test_a_long_call_needs_none_before_it_that_warms_the_caches(seconds: float, n_calls: int):
    calls: list[int] = []

    def wait() -> None:
        calls.append(1)
        time.sleep(seconds)

    interleave({"": wait}, 2)
    assert len(calls) == n_calls
