"""One library, one model, several ONNX Runtimes.

``TCFUSE_TEST_PYTHONS`` names Python interpreters (separated by ``:``), each with its own
``onnxruntime`` and NumPy; without it these tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import onnx.parser
import pytest

from tcfuse.ort.library import build_library
from tcfuse.targets.base import Interface, KernelSource, Phase, Port
from tcfuse.types import DType, TensorType

PYTHONS = [p for p in os.environ.get("TCFUSE_TEST_PYTHONS", "").split(":") if p]
pytestmark = [
    pytest.mark.compiler,
    pytest.mark.ort,
    pytest.mark.skipif(not PYTHONS, reason="TCFUSE_TEST_PYTHONS names no interpreters"),
]

MODEL = """
<ir_version: 8, opset_import: ["" : 17, "tcfuse" : 1]>
g (float[N, M] x, int64[K] i) => (float[K, M] y) {
  t = tcfuse.twice (x)
  y = tcfuse.pick (t, i)
}
<opset_import: ["" : 17], domain: "tcfuse">
twice (x) => (y) { y = Add (x, x) }
<opset_import: ["" : 17], domain: "tcfuse">
pick (x, i) => (y) { y = Gather (x, i) }
"""

ARGUMENTS = (
    "(char* const* t, const int64_t* n, char* shared, char* local,"
    " int64_t begin, int64_t end, int32_t* fault)"
)

TWICE = f"""
TCF_KERNEL(twice_0){ARGUMENTS} {{
  for (int64_t i = begin * n[1]; i < end * n[1]; i++)
    ((float*)shared)[i] = ((const float*)t[0])[i];
}}
TCF_KERNEL(twice_1){ARGUMENTS} {{
  for (int64_t i = begin * n[1]; i < end * n[1]; i++)
    ((float*)t[1])[i] = 2 * ((float*)shared)[i];
}}
"""

PICK = f"""
TCF_KERNEL(pick_0){ARGUMENTS} {{
  for (int64_t i = begin; i < end; i++) {{
    int64_t from = ((const int64_t*)t[1])[i];
    if (from < 0 || from >= n[0]) {{ *fault = 1; return; }}
    for (int64_t j = 0; j < n[1]; j++)
      ((float*)t[2])[i * n[1] + j] = ((const float*)t[0])[from * n[1] + j];
  }}
}}
"""

# Run by each interpreter, with the model, the library and the newest operators it can use.
CHECK = """
import sys
import numpy as np
import onnxruntime as ort

model, library = sys.argv[1:]
minor = int(ort.__version__.split(".")[1])
x = np.random.default_rng(0).standard_normal((700, 300)).astype(np.float32)
index = np.arange(900) % 700

def open_model(library, threads=1, **entries):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    for key, value in entries.items():
        options.add_session_config_entry("tcfuse." + key, value)
    if library:
        options.register_custom_ops_library(library)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

def correct(session):
    return np.array_equal(session.run(None, {"x": x, "i": index})[0], 2 * x[index])

assert correct(open_model(None))
for threads in (1, 2):
    session = open_model(library, threads)
    assert correct(session)
    try:
        session.run(None, {"x": x, "i": index + 1})
        raise SystemExit("no error for an index out of range")
    except Exception as error:
        # Before 1.17 the original operators run, and say it in their own words.
        assert minor < 17 or "tcfuse: pick: an index is out of range" in str(error), error
    assert correct(session)
assert correct(open_model(library, level="v2"))
assert correct(open_model(library, disable="*"))
assert correct(open_model(library, disable="pick"))
print("all right")
"""


def kernels() -> list[KernelSource]:
    matrix = Port("x", TensorType(DType.FLOAT32, ("n0", "n1")))
    index = Port("i", TensorType(DType.INT64, ("n2",)))
    picked = Port("y", TensorType(DType.FLOAT32, ("n2", "n1")))
    twice = Interface((matrix,), (Port("y", matrix.type),), ("n0", "n1"))
    pick = Interface((matrix, index), (picked,), ("n0", "n1", "n2"))
    phases = (Phase("twice_0", "n0", "100 * n1"), Phase("twice_1", "n0", "100 * n1"))
    return [
        KernelSource("twice", TWICE, twice, phases, shared_bytes="4 * n0 * n1"),
        KernelSource("pick", PICK, pick, (Phase("pick_0", "n2", "100 * n1"),)),
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("versions")
    model = folder / "model.onnx"
    model.write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
    return model, build_library(kernels(), folder / "model.so").path


@pytest.mark.parametrize("python", PYTHONS)
def test_every_runtime_gives_the_same_answers(python: str, files: tuple[Path, Path]) -> None:
    command = [python, "-c", CHECK, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.strip() == "all right", done.stdout + done.stderr
