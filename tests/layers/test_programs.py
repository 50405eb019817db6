"""Programs of every kind: called, on threads, in ONNX Runtime, and beside the evaluator.

``--all-cases`` takes every program instead of a few.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

from tcfuse.layers.build import BuildOptions, build_layers
from tcfuse.layers.compiling import Settings
from tcfuse.layers.layer import Layer
from tcfuse.ort.inference import Session, open_session
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.evaluate import evaluate
from tcfuse.tc.fixing import check_with_sizes
from tcfuse.tc.parser import parse_file
from tests.targets.language import Written, inputs_of
from tests.targets.language_cases import CORNERS, INFERENCE, LAYERS, QUIRKS, UPDATES
from tests.targets.test_cpu import assert_equal

pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.compiler, pytest.mark.ort]

PROGRAMS: dict[str, Written] = {**INFERENCE, **CORNERS, **LAYERS, **QUIRKS, **UPDATES}
EVERY = 13  # one program in so many, unless all are asked for


@dataclass(frozen=True)
class Made:
    """A program as a layer and as an operator."""

    checked: CheckedDef
    session: Session

    def layer(self, threads: int) -> Layer:
        return Layer(self.checked, Settings(threads=threads, quiet=True))


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, Made]:
    """The programs by name, all of one library."""
    every = 1 if request.config.getoption("--all-cases") else EVERY
    names = list(PROGRAMS)[::every]
    definitions = [_definition(name, PROGRAMS[name].text) for name in names]
    target = tmp_path_factory.mktemp("programs") / "programs"
    built = build_layers(definitions, target, BuildOptions())
    sessions = [open_session(model, built.library) for model in built.models]
    pairs = map(Made, definitions, sessions)
    return dict(zip(names, pairs, strict=True))


def _definition(name: str, text: str) -> CheckedDef:
    """A program under a name of its own."""
    own = f"program_{re.sub(r'[^A-Za-z0-9]', '_', name)}"
    (checked,) = check_with_sizes(
        parse_file(re.sub(r"def \w+", f"def {own}", text, count=1)), {}
    )
    return checked


def called(layer: Layer, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    checked = layer.checked
    out = tuple(given[n].copy() if n in checked.inout else None for n in checked.outputs)
    arguments = [given[name] for name in checked.inputs]
    found = layer(*arguments, out=out if checked.inout else None)
    return list(found) if isinstance(found, tuple) else [found]


def test_a_layer_an_operator_and_the_evaluator_agree(made: dict[str, Made]) -> None:
    for name, program in made.items():
        checked, written = program.checked, PROGRAMS[name]
        layers = [program.layer(threads) for threads in (1, 3)]
        for position, sizes in enumerate(written.sizes):
            given = inputs_of(checked, sizes, written.below, position)
            exact = evaluate(checked, given)
            names = (*checked.inputs, *checked.inout)
            ports = [value.name for value in program.session.get_inputs()]
            feeds = {port: given[n] for port, n in zip(ports, names, strict=True)}
            there = program.session.run(None, feeds)
            for found in (called(layers[0], given), called(layers[1], given)):
                for output, here, other in zip(checked.outputs, found, there, strict=True):
                    np.testing.assert_array_equal(here, other, f"{name}: {output}")
            assert_equal(checked, dict(zip(checked.outputs, there, strict=True)), exact)
