"""What a problem says about itself."""

from __future__ import annotations

import importlib.metadata
import json

import pytest

from tcfuse.interface import Interface, Port
from tcfuse.ort.sizes import known_sizes
from tcfuse.targets import compilers
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check
from tcfuse.types import DType, TensorType
from tcfuse.wisdom.problem import Layer, Problem
from tcfuse.wisdom.versions import current_versions, stale
from tests.wisdom.entries import VERSIONS, entry, problem

SCALED = """def f(float(N, 768) X, float(768) W) -> (float(N, 768) Y) {
  Y(i, j) = X(i, j) * W(j) where i in 0:N, j in 0:768
}"""


def test_sizes_are_those_of_the_text_and_those_that_are_measured() -> None:
    checked = check(parse(SCALED))
    found = Problem.of(checked, {"N": 128}, "cpu", "a processor", "default")
    assert found.sizes == (128, 768)
    assert found.size_class == (8, 10)
    unknown = Problem.of(checked, {}, "cpu", "a processor", "default")
    assert unknown.sizes == (0, 768)
    assert unknown.template == found.template
    assert unknown.family == found.family
    assert unknown.key != found.key
    layer = Layer.of(checked)
    assert Layer.of_record(json.loads(json.dumps(layer.to_record()))) == layer


def test_whatever_is_another_problem_has_another_key() -> None:
    changes = ({}, {"threads": 2}, {"device": "x"}, {"numerics": "fast"}, {"target": "cuda"})
    others = [problem(**change) for change in changes]
    assert len({other.key for other in [*others, problem(64, 65)]}) == 6


def test_measured_entries_go_first_whatever_was_predicted() -> None:
    assert entry(speedup=1.01).better_than(entry(speedup=9.0, predicted=True))
    assert entry(speedup=1.2).better_than(entry(speedup=1.1))
    assert not entry().better_than(entry())


def test_entries_of_other_versions_are_stale() -> None:
    assert stale(VERSIONS, VERSIONS) == ""
    assert stale({**VERSIONS, "compiler": "gcc 13"}, VERSIONS) == "gcc 13"
    assert stale({"compiler": VERSIONS["compiler"], "tcfuse": "0.0.1"}, VERSIONS) == (
        "tcfuse 0.0.1"
    )


def test_versions_are_the_installed_ones() -> None:
    now = current_versions()
    assert now["tcfuse"] == importlib.metadata.version("tcfuse")
    assert now["compiler"] == str(compilers.find_compiler())


@pytest.mark.parametrize(
    ("shape", "named", "expected"),
    [
        (["batch", 4], {"batch": 8}, {"n0": 8, "n1": 32}),
        (["2*seq + 1", 4], {"seq": 3}, {"n0": 7, "n1": 28}),
        ([5, 4], {}, {"n0": 5, "n1": 20}),
        (["batch", 4], {}, {}),
        ([None, 4], {}, {}),
        (["a name?", 4], {"a": 1}, {}),
    ],
)
def test_sizes_of_a_kernel_follow_from_those_of_its_model(
    shape: list, named: dict, expected: dict
) -> None:
    port = Port("x", TensorType(DType.FLOAT32, ("n0", 4)))
    interface = Interface((port,), (port,), ("n0", "n1"), derived=(("n1", "n0 * 4"),))
    assert known_sizes(interface, [shape], named) == expected
