"""Into how many pieces a loop is cut for the threads of a session.

The kernel writes the length of the piece each element was computed in.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from tcfuse.ort.library import build_library
from tcfuse.targets.base import Interface, KernelSource, Phase, Port
from tcfuse.targets.compilers import levels
from tcfuse.types import DType, TensorType

ort = pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.ort, pytest.mark.compiler]

EXTENT = 96
MICROSECONDS = {"little": 12, "some": 40, "much": 2000}
SPINNING = "session.intra_op.allow_spinning"


def kernel(name: str, microseconds: int) -> KernelSource:
    """One that is said to take so long, whatever it takes."""
    text = f"""
TCF_KERNEL({name}_0)(char* const* t, const int64_t* n, char* shared, char* local,
                     int64_t begin, int64_t end, int32_t* fault) {{
  for (int64_t i = begin; i < end; i++) ((float*)t[1])[i] = (float)(end - begin);
}}"""
    vector = TensorType(DType.FLOAT32, (EXTENT,))
    interface = Interface((Port("x", vector),), (Port("y", vector),), ())
    phase = Phase(f"{name}_0", str(EXTENT), str(microseconds * 1_000_000 // EXTENT))
    return KernelSource(name, text, interface, (phase,))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chunks") / "chunks.so"
    kernels = [kernel(name, us) for name, us in MICROSECONDS.items()]
    return build_library(kernels, path, built=levels()[:1]).path


def chunks(library: Path, name: str, **entries: str) -> int:
    """How many pieces there are when a session has those entries."""
    text = f"""
<ir_version: 8, opset_import: ["" : 17, "tcfuse" : 1]>
g (float[{EXTENT}] x) => (float[{EXTENT}] y) {{ y = tcfuse.{name} (x) }}"""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.register_custom_ops_library(str(library))
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    model = onnx.parser.parse_model(text).SerializeToString()
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (lengths,) = session.run(None, {"x": np.zeros(EXTENT, np.float32)})
    return round(float((1 / lengths).sum()))


def test_little_work_does_not_meet_the_thread_pool(library: Path) -> None:
    assert chunks(library, "little") == 1


def test_pieces_are_worth_a_thread(library: Path) -> None:
    assert 2 <= chunks(library, "some") <= 10
    assert chunks(library, "much") == 64


def test_threads_that_sleep_are_woken_for_much_work_only(library: Path) -> None:
    if tuple(map(int, ort.__version__.split(".")[:2])) < (1, 24):
        pytest.skip("nodes cannot read the entries of their session")
    assert chunks(library, "some", **{SPINNING: "0"}) == 1
    assert chunks(library, "some", **{SPINNING: "1"}) > 1
    assert chunks(library, "much", **{SPINNING: "0"}) == 64
