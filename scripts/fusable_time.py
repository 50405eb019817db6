"""How much of the time that fusion can save lies in nodes that run inside kernels.

*Fusable* time is what ONNX Runtime spends, one thread and its own optimizations on, in nodes
that are neither matrix products, convolutions or recurrent layers nor control flow.  It is
taken from ONNX Runtime's profile, a low percentile of many runs for each node.

ONNX Runtime's optimizer renames and merges nodes, so a profiled node stands for *original*
nodes.  A node that still has the name and type it had stands for itself.  Any other stands for
the original nodes between its inputs and its outputs.  A value that the original model does not
have is the one that its maker is named after, if there is such a name; otherwise inputs are
followed backward and outputs forward to the nearest that it has.  Products and constants
between do not count, nor do reshapes beside others.  A change of layout stands for the
operators for whose sake it is there: those that read a plain tensor, or made it.  What stands
for nothing counts as outside.  The time of a profiled node is shared evenly among the nodes it
stands for.

``python -m scripts.fusable_time MODEL [MODEL ...]`` prints two rows a model, with the gate and
without: the time of the nodes that run inside kernels, and what is left of the fusable time
when the optimized model is profiled in the same way.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

import tcfuse
from tcfuse.commands.bench import Conditions, measure
from tcfuse.graph.fallback import DOMAIN
from tcfuse.graph.legality import constant_nodes, is_fixed
from tcfuse.graph.rewrite import NODES_KEY
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import runtime
from tcfuse.ort.manifest import library_path
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses

PERCENTILE = 20  # of a node's times; the machine is rarely quiet
SUFFIX = "_kernel_time"
BLOCKED = "_nchwc"  # behind the name of a value whose maker works on blocks of channels
PRODUCTS = (
    *("Attention", "Conv", "DynamicQuantizeMatMul", "GRU", "Gemm", "LSTM", "MatMul", "QGemm"),
    "RNN",
)
CONTROL = ("If", "Loop", "Scan")
IDLE = ("Constant", "Flatten", "Identity", "Reshape", "Shape", "Squeeze", "Unsqueeze")


def is_fusable(op_type: str) -> bool:
    """Whether the time of an operator counts: it is neither a product nor control flow."""
    return op_type not in CONTROL and not any(word in op_type for word in PRODUCTS)


@dataclass(frozen=True)
class Profile:
    """Where a model's time goes: microseconds a run by node name, and what was run."""

    times: Mapping[tuple[str, str], float]
    optimized: ir.Model

    @property
    def total(self) -> float:
        """Microseconds in all nodes."""
        return sum(self.times.values())

    @property
    def fusable(self) -> float:
        """Microseconds in nodes that fusion can take."""
        return sum(t for (_, op), t in self.times.items() if is_fusable(op))


def profile(model: Path, library: Path | None, runs: int) -> Profile:
    """The profile of a model under ONNX Runtime, one thread."""
    ort = runtime()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if library is not None:
        options.register_custom_ops_library(str(library))
    with tempfile.TemporaryDirectory(prefix="tcfuse-") as folder:
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        loaded = ir.load(model)
        inputs = model_feeds(loaded, next(shape_guesses(loaded, Wishes())))
        for _ in range(runs):
            run(session, inputs)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        optimized = ir.load(options.optimized_model_filepath)
        for value in optimized.graph.initializers.values():
            value.const_value = None  # may lie in a file that goes now
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(SUFFIX):
            key = event["name"].removesuffix(SUFFIX), event["args"]["op_name"]
            times[key].append(event["dur"])
    each = {key: float(np.percentile(found, PERCENTILE)) for key, found in times.items()}
    return Profile(each, optimized)


class Correspondence:
    """Which nodes of the original each node of ONNX Runtime's optimized graph stands for."""

    def __init__(self, original: ir.Graph, optimized: ir.Graph) -> None:
        self.nodes = {str(node.name): node for node in original}
        self.values = {str(v.name): v for node in original for v in node.outputs}
        self.inputs = {str(v.name) for v in original.inputs}
        self.constants = constant_nodes(original) | {
            node for node in original if all(v is None or is_fixed(v) for v in node.inputs)
        }
        self.optimized = {str(node.name): node for node in optimized}
        self.known = {v: name for node in optimized for v, name in self._named_after(node)}
        self._sides: dict[tuple[ir.Value, bool], frozenset[str]] = {}

    def of(self, name: str, op_type: str) -> tuple[str, ...]:
        """Names of original nodes."""
        same = self.nodes.get(name)
        if same is not None and same.op_type == op_type:
            return (name,)
        node = self.optimized.get(name)
        if node is None:
            return ()
        first = {n for v in node.inputs if v is not None for n in self._side(v, forward=False)}
        last = {n for v in node.outputs for n in self._side(v, forward=True)}
        if op_type in ("ReorderInput", "ReorderOutput"):
            return self._served(first, plain_input=op_type == "ReorderInput")
        between = [n for n in self._between(first, last) if is_fusable(n.op_type)]
        computing = [n for n in between if n.op_type not in IDLE]
        return tuple(str(n.name) for n in computing or between)

    def _served(self, names: set[str], *, plain_input: bool) -> tuple[str, ...]:
        """The original nodes that made these plain values, or that read them."""
        values = [self.values[name] for name in names if name in self.values]
        makers = {v.producer() for v in values}
        readers = {user for v in values for user, _ in v.uses()}
        sides = (makers, readers) if plain_input else (readers, makers)
        for side in sides:
            found = [str(n.name) for n in side if n is not None and is_fusable(n.op_type)]
            if found:
                return tuple(sorted(found))
        return ()

    def _named_after(self, node: ir.Node) -> Iterator[tuple[ir.Value, str]]:
        """New values of an optimized node, with the original value that its name mentions."""
        name = str(node.name)
        made = name.removesuffix(BLOCKED)
        merged = self.nodes.get(name.rpartition("Fusion/")[0].rpartition("/")[0])
        if merged is not None:
            made = str(merged.outputs[0].name)
        value = node.outputs[0]
        if made in self.values and str(value.name) not in self.values:
            yield value, made

    def _side(self, value: ir.Value, *, forward: bool) -> frozenset[str]:
        """The nearest values of the original model, forward or backward."""
        name = self.known.get(value, str(value.name))
        if name in self.values or name in self.inputs:
            return frozenset((name,))
        key = value, forward
        if key not in self._sides:
            producer = value.producer()
            if forward:
                near = [v for user, _ in value.uses() for v in user.outputs]
            else:
                near = [v for v in producer.inputs if v is not None] if producer else []
            found = (self._side(v, forward=forward) for v in near)
            self._sides[key] = frozenset().union(*found)
        return self._sides[key]

    def _between(self, first: set[str], last: set[str]) -> Iterator[ir.Node]:
        """The original nodes that make ``last`` of ``first``."""
        stack, seen = [name for name in last - first if name in self.values], set(first)
        met: set[ir.Node] = set()
        while stack:
            name = stack.pop()
            node = self.values[name].producer()
            if name in seen or node is None or node in self.constants:
                continue
            seen.add(name)
            if node not in met:
                met.add(node)
                yield node
            stack += [
                str(v.name) for v in node.inputs if v is not None and v.name in self.values
            ]


def shared_times(profiled: Profile, original: ir.Graph) -> dict[str, float]:
    """Fusable microseconds by original node; the empty name has what belongs to nobody."""
    correspondence = Correspondence(original, profiled.optimized.graph)
    found: dict[str, float] = defaultdict(float)
    for (name, op_type), time in profiled.times.items():
        if is_fusable(op_type):
            names = correspondence.of(name, op_type) or ("",)
            for each in names:
                found[each] += time / len(names)
    return found


def inside(model: ir.Model) -> set[str]:
    """Names of the original nodes that an optimized model runs in kernels."""
    texts = (node.metadata_props.get(NODES_KEY, "") for node in model.graph)
    return {name for text in texts for name in text.split("\n") if name}


def named(model: ir.Model) -> ir.Model:
    """``model`` with a name of its own for every node."""
    seen: set[str | None] = {None, ""}
    for k, node in enumerate(model.graph):
        if node.name in seen:
            node.name = f"{node.op_type}_of_no_name_{k}"
        seen.add(node.name)
    return model


HEADER = (
    "model", "gate", "total ms", "fusable ms", "share", "kernels", "inside", "left", "speedup",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What one way of optimizing a model takes of its fusable time."""

    row: tuple[str, ...]
    outside: Sequence[tuple[float, str]]


def outcome(path: Path, runs: int, rounds: int, *, gate: bool) -> Outcome:
    """Profile a model, optimize it, and profile it again."""
    with tempfile.TemporaryDirectory(prefix="tcfuse-") as folder:
        source = Path(folder) / path.name
        ir.save(named(ir.load(path)), source)
        before = profile(source, None, runs)
        result = tcfuse.optimize(source, gate=gate)
        target = result.save(Path(folder) / f"{path.stem}.fused.onnx")
        library = library_path(target) if result.library is not None else None
        original = ir.load(source)
        times, taken = shared_times(before, original.graph), inside(result.model)
        after = profile(target, library, runs)
        contenders = ir.load(source), ir.load(target)
        ratio, _ = measure(contenders, library, Wishes(), Conditions(rounds=rounds))
    kernels = {node.op_type for node in result.model.graph if node.domain == DOMAIN}
    left = sum(t for (_, op), t in after.times.items() if is_fusable(op) and op not in kernels)
    within = sum(time for name, time in times.items() if name in taken)
    fusable = before.fusable
    reasons = dict(result.report.rejections)
    outside = sorted(
        ((time, name) for name, time in times.items() if name not in taken), reverse=True
    )
    kinds = {str(node.name): node.op_type for node in original.graph}
    told = [
        (t, f"{kinds.get(n, 'layout')} {n}: {reasons.get(f'{kinds.get(n)} {n}', '')}")
        for t, n in outside
    ]
    row = (
        path.stem,
        "yes" if gate else "no",
        f"{before.total / 1e3:.2f}",
        f"{fusable / 1e3:.2f}",
        f"{fusable / before.total:.0%}",
        f"{len(result.report.kept)}",
        f"{within / fusable:.0%}",
        f"{left / fusable:.0%}",
        f"{ratio.value:.2f}",
    )
    return Outcome(row, told)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--runs", type=int, default=30, help="runs of a profile (default 30)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of timing (default 15)")
    parser.add_argument("--way", choices=("gate", "no-gate", "both"), default="both")
    parser.add_argument(
        "--outside",
        type=int,
        default=0,
        metavar="N",
        help="list the N nodes outside of kernels that take longest",
    )
    given = parser.parse_args(arguments)
    if missing := [str(path) for path in given.models if not path.is_file()]:
        parser.error(f"no such model: {', '.join(missing)}")
    write = sys.stdout.write
    write(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}\n")
    for path in given.models:
        for gate in {"gate": (True,), "no-gate": (False,), "both": (True, False)}[given.way]:
            found = outcome(path, given.runs, given.rounds, gate=gate)
            write(f"| {' | '.join(found.row)} |\n")
            for time, node in found.outside[: given.outside]:
                write(f"  {time:.0f} us {node}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
