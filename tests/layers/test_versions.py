"""One library of layers, its models, several ONNX Runtimes.

``TCFUSE_TEST_PYTHONS`` names Python interpreters (separated by ``:``), each with its own
``onnxruntime`` of 1.17 or newer and NumPy; without it these tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tcfuse.layers.build import Built, build_layers
from tcfuse.tc.fixing import check_with_sizes
from tcfuse.tc.parser import parse_file
from tests.layers.definitions import TEXT

PYTHONS = [p for p in os.environ.get("TCFUSE_TEST_PYTHONS", "").split(":") if p]
pytestmark = [
    pytest.mark.compiler,
    pytest.mark.ort,
    pytest.mark.skipif(not PYTHONS, reason="TCFUSE_TEST_PYTHONS names no interpreters"),
]

# Run by each interpreter, with the library and the models.
CHECK = """
import sys
import numpy as np
import onnxruntime as ort

library, softmax, convolve = sys.argv[1:]

def open_model(model, threads):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.register_custom_ops_library(library)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

rng = np.random.default_rng(0)
for threads in (1, 2):
    session = open_model(softmax, threads)
    for shape in ((3, 4), (1800, 700)):
        x = rng.standard_normal(shape).astype(np.float32)
        exact = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        assert np.allclose(session.run(None, {"I": x})[0], exact, rtol=1e-4)
    session = open_model(convolve, threads)
    given = {"X": np.ones(9, np.float32), "w": np.ones(3, np.float32)}
    assert session.run(None, given)[0].tolist() == [3] * 7
    given["w"] = np.ones(20, np.float32)
    try:
        session.run(None, given)
        raise SystemExit("no error for sizes that do not fit")
    except Exception as error:
        assert "tcfuse: convolve: the size" in str(error), error
print("all right")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    checked = check_with_sizes(parse_file(TEXT), {})
    wanted = [c for c in checked if c.definition.name in ("softmax", "convolve")]
    return build_layers(wanted, tmp_path_factory.mktemp("versions") / "layers")


@pytest.mark.parametrize("python", PYTHONS)
def test_every_runtime_gives_the_same_answers(python: str, built: Built) -> None:
    files = [built.library, *built.models]
    command = [python, "-c", CHECK, *map(str, files)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=Path.home()
    )
    assert done.stdout.strip() == "all right", done.stdout + done.stderr
