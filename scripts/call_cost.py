"""What a call of a fused node costs beside one of ONNX Runtime's own: microseconds a node.

``python -m scripts.call_cost [--length 200] [--python PYTHON ...]``

Chains of nodes that compute next to nothing, once as ONNX Runtime's operators and once as fused
nodes with a kernel each.  What a long chain takes more than one node, divided by the nodes it
has more, is what a node costs: the call itself and what the runtime does between two.

Whatever Python has ``onnxruntime`` and NumPy can measure, so ``--python`` compares versions;
before 1.24 a call reads dimensions through functions that allocate.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

LENGTH = 200
ROUNDS = 15
CALLS = 40  # in a row


@dataclass(frozen=True, slots=True)
class Kind:
    """A chain: the operator of its nodes, and the size of its vectors."""

    operator: str
    size: int | str

    @property
    def name(self) -> str:
        """As the table says it, and the files are called."""
        return f"{self.operator}, {'static' if isinstance(self.size, int) else 'dynamic'}"


KINDS = (Kind("Neg", 8), Kind("Neg", "N"), Kind("Add", 8), Kind("Add", "N"))


def build(folder: Path, length: int) -> None:
    """Every chain, of one node and of ``length``, as operators and as fused nodes."""
    import onnx_ir as ir

    from tcfuse.graph.load import load_model
    from tcfuse.graph.rewrite import rewrite
    from tcfuse.ort.library import build_library

    kernels = {}
    for kind in KINDS:
        for n in (1, length):
            model = load_model(_chain(kind, n))
            ir.save(model, folder / f"{kind.name}.native.{n}.onnx")
            replacements = []
            for replacement, source in _replacements(model):
                kernels[source.name] = source
                replacements.append(replacement)
            ir.save(rewrite(model, replacements), folder / f"{kind.name}.fused.{n}.onnx")
    build_library(list(kernels.values()), folder / "fused.so")


def _chain(kind: Kind, length: int) -> Any:
    from models.draft import Draft

    g = Draft("chain")
    first = value = g.input("x", [kind.size])
    for _ in range(length):
        value = g.op(kind.operator, *((value, first) if kind.operator == "Add" else (value,)))
    g.output(value, "y", [kind.size])
    return g.model()


def _replacements(model: Any) -> Iterator[tuple[Any, Any]]:
    """Each node as a region of its own, with its kernel; equal ones share it."""
    from tcfuse.graph.boundary import group_of
    from tcfuse.graph.rewrite import Replacement
    from tcfuse.kernels import compile_cached
    from tcfuse.mapping_options import MappingOptions
    from tcfuse.store import Store
    from tcfuse.tc.compose import compose
    from tcfuse.tc.sema import check

    for node in model.graph:
        group = group_of((node,), model.opset_imports)
        composed = compose(group, model.opset_imports)
        kernel = compile_cached(
            check(composed.definition),
            composed.interface,
            node.op_type.lower(),
            MappingOptions(),
            Store.default(),
        )
        yield (
            Replacement(group, kernel.name, composed.inputs, composed.outputs),
            kernel.source,
        )


def measure(folder: Path, length: int) -> dict[str, Any]:
    """Microseconds a node of each chain in this Python's ONNX Runtime."""
    import onnxruntime as ort

    def opened(kind: Kind, form: str, n: int) -> Callable[[], Any]:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        if form == "fused":
            options.register_custom_ops_library(str(folder / "fused.so"))
        return _bound(ort, folder / f"{kind.name}.{form}.{n}.onnx", options)

    found: dict[str, Any] = {"onnxruntime": ort.__version__, "us": {}}
    for kind in KINDS:
        pairs = [(form, n) for form in ("native", "fused") for n in (1, length)]
        calls = {pair: opened(kind, *pair) for pair in pairs}
        times = {pair: list[float]() for pair in pairs}
        for turn in range(ROUNDS):
            for pair in pairs if turn % 2 else pairs[::-1]:
                times[pair].append(_seconds(calls[pair]))
        best = {pair: min(samples) for pair, samples in times.items()}
        found["us"][kind.name] = {
            form: 1e6 * (best[form, length] - best[form, 1]) / (length - 1)
            for form in ("native", "fused")
        }
    return found


def _bound(ort: Any, path: Path, options: Any) -> Callable[[], Any]:
    """A call of the model, with its input and output bound once."""
    import numpy as np

    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    arrays = [ort.OrtValue.ortvalue_from_numpy(np.full(8, k, np.float32)) for k in (1, 0)]
    binding.bind_ortvalue_input("x", arrays[0])
    binding.bind_ortvalue_output("y", arrays[1])

    def call(arrays: Any = arrays) -> None:  # ``arrays`` live as long as the binding
        session.run_with_iobinding(binding)

    call()
    return call


def _seconds(call: Callable[[], Any]) -> float:
    samples = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return median(samples)


def lines(found: dict[str, Any]) -> Iterator[str]:
    """A table of what one Python measured."""
    yield f"ONNX Runtime {found['onnxruntime']}: us a node"
    yield f"{'':14} {'native':>8} {'fused':>8} {'more':>8}"
    for kind, us in found["us"].items():
        more = us["fused"] - us["native"]
        yield f"{kind:14} {us['native']:8.3f} {us['fused']:8.3f} {more:8.3f}"


def main() -> None:
    """Build once, measure in every Python."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=LENGTH, help="nodes in a chain")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters")
    parser.add_argument("--folder", type=Path, help="keep the models there, or use those there")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.folder, arguments.length)))
        return
    with tempfile.TemporaryDirectory(prefix="tcfuse-calls-") as name:
        folder = arguments.folder or Path(name)
        if not (folder / "fused.so").exists():
            build(folder, arguments.length)
        for python in arguments.python:
            command = [python, __file__, "--measure", "--folder", str(folder)]
            command += ["--length", str(arguments.length)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(*lines(json.loads(done.stdout)), sep="\n")


if __name__ == "__main__":
    main()
