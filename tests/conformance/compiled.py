"""ONNX's node cases through the whole compiler: fused, built, and run by ONNX Runtime.

``python -m tests.conformance.compiled --all`` runs every case; ``--symbolic`` gives sizes names
first (equal sizes equal names).  A case is *inside* when all its nodes are in one kernel, so
that ONNX Runtime runs nothing else.  What decides loops (axes, target shapes) is made a
constant of its value in the case's first data set.

Many cases share one library, and a process that crashes costs only the case that crashed it.
"""

from __future__ import annotations

import argparse
import pickle
import platform
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper

from tcfuse import opdef
from tcfuse.debug import cache_dir, current
from tcfuse.errors import InputError, ToolchainError, UnsupportedError
from tcfuse.graph.boundary import group_of
from tcfuse.graph.legality import Candidate, may_join
from tcfuse.graph.load import load_model
from tcfuse.graph.plan import FusionGroup
from tcfuse.graph.rewrite import Replacement, rewrite
from tcfuse.mapping_options import MappingOptions
from tcfuse.ort.arrays import to_array, to_value
from tcfuse.ort.inference import open_session
from tcfuse.ort.library import kernel_unit, shell_units
from tcfuse.targets.base import KernelSource
from tcfuse.targets.compilers import Level, is_x86, levels
from tcfuse.targets.cpu import compile_kernel
from tcfuse.targets.toolchain import Toolchain, Unit
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.compose import Composed, compose
from tcfuse.tc.sema import check
from tests.conformance.choice import add_choice, chosen
from tests.conformance.node_cases import ROUNDING, agree, array_of, cases, type_of

T = TypeVar("T")
FOLDED = ("Constant", "ConstantOfShape", "Range", "Shape", "Size")
DECIDING = {
    "If": 1,
    "Loop": 2,
    "Scan": 0,
    "FlexAttention": 0,
}  # what bodies run for: the first inputs say how often they do
BATCH = 60
UNITS = 4  # translation units of a batch's kernels
OUTSIDE = (
    "has no definition",
    "no element type",
    "is not a tensor",
    "not a model",
    "has opset 1,",
)
"""Reasons that put a case outside what the operator library defines."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A case with its kernel, still to be built and run.

    Attributes:
        model: Serialized, with the fused node.
        runs: Inputs by name and expected outputs by name, for each data set.
    """

    name: str
    kernel: KernelSource
    model: bytes
    runs: tuple[tuple[dict[str, np.ndarray], dict[str, np.ndarray]], ...]
    rounds: bool

    @property
    def kernels(self) -> tuple[KernelSource, ...]:
        """Everything that must be in the library."""
        return (self.kernel,)

    def answer(self, library: Path) -> str:
        """See ``run_ready``."""
        return run_ready(self, library)


class Runnable(Protocol):
    """A model and the kernels it needs."""

    name: str
    kernels: tuple[KernelSource, ...]

    def answer(self, library: Path) -> str:
        """``equal``, what is wrong, or why it is ``left: ...``."""


@dataclass
class Outcome:
    """What became of the cases so far.

    Attributes:
        outside: Why cases are not for the operator library: what they need has no definition.
        refused: Why other cases got no kernel.
    """

    outside: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    equal: list[str] = field(default_factory=list)

    @property
    def inside(self) -> int:
        """Cases that got a kernel, or should have."""
        return len(self.equal) + len(self.failed)

    def summary(self) -> str:
        """Failures, then refusals by reason, then the totals in the last line."""
        lines = [f"FAILED {name}: {text}" for name, text in self.failed.items()]
        for word, reasons in (("outside", self.outside), ("refused", self.refused)):
            counted = Counter(reasons.values()).most_common()
            lines += [f"{word} {n}: {reason}" for reason, n in counted]
        total = self.inside + len(self.refused) + len(self.outside)
        lines.append(f"inside {self.inside}, equal {len(self.equal)}, of {total}")
        return "\n".join(lines)


# ---------------------------------------------------------------------- from case to kernel


@dataclass(frozen=True, slots=True)
class Whole:
    """A case's model with everything in it composed to one definition."""

    proto: onnx.ModelProto
    model: ir.Model
    group: FusionGroup
    composed: Composed
    runs: tuple[tuple[dict[str, np.ndarray], dict[str, np.ndarray]], ...]

    @property
    def checked(self) -> CheckedDef:
        """The definition."""
        definition, interface = self.composed.definition, self.composed.interface
        return check(definition, sizes=interface.sizes)

    @property
    def rounds(self) -> bool:
        """Whether a value at the middle between two integers may go to either."""
        return any(node.op_type in ROUNDING for node in self.proto.graph.node)


def composed_whole(case: Any, *, symbolic: bool = False) -> Whole:
    """The definition of a case.

    Raises:
        UnsupportedError: Something refuses; the sentence says what.
    """
    if case.model is None or not case.model.graph.node:
        raise UnsupportedError("not a model")
    proto = onnx.ModelProto()
    proto.CopyFrom(case.model)
    check_defined(proto)
    names = [value.name for value in proto.graph.input]
    outputs = [value.name for value in proto.graph.output]
    runs = tuple(
        (
            dict(zip(names, map(array_of, given), strict=False)),
            dict(zip(outputs, map(array_of, wanted), strict=True)),
        )
        for given, wanted in case.data_sets
    )
    for given, wanted in runs:
        for array in (*given.values(), *wanted.values()):
            type_of(array)
    bake(proto, runs[0][0])
    if symbolic:
        name_sizes(proto)
    model, group = group_of_everything(proto)
    return Whole(proto, model, group, compose(group, model.opset_imports), runs)


def prepare(case: Any, *, symbolic: bool = False) -> Ready:
    """The case's model with everything in it fused.

    Raises:
        UnsupportedError: Something refuses; the sentence says what.
    """
    whole = composed_whole(case, symbolic=symbolic)
    kernel, fused = with_kernel(whole.model, whole.group, whole.composed, MappingOptions())
    return Ready(case.name, kernel, fused, whole.runs, whole.rounds)


def check_defined(proto: onnx.ModelProto) -> None:
    """Raise ``UnsupportedError`` for a node that has no definition."""
    opsets = {entry.domain: entry.version for entry in proto.opset_import}
    for node in proto.graph.node:
        if node.op_type not in (*FOLDED, *DECIDING):
            opdef.find(node.op_type, opsets.get(node.domain, 1), node.domain)


def bake(proto: onnx.ModelProto, given: dict[str, np.ndarray]) -> None:
    """Make constants of the inputs that decide loops: axes, shapes, repeats."""
    opsets = {entry.domain: entry.version for entry in proto.opset_import}
    static: set[str] = set()
    add_static(proto.graph, opsets, static)
    for value in list(proto.graph.input):
        if value.name in static and value.name in given:
            proto.graph.initializer.append(
                numpy_helper.from_array(given[value.name], value.name)
            )
            proto.graph.input.remove(value)


def add_static(graph: onnx.GraphProto, opsets: dict[str, int], static: set[str]) -> None:
    """Add the names of values that decide loops, in a graph and in what it chooses from."""
    for node in reversed(graph.node):
        if node.op_type in FOLDED:
            inputs = set(node.input) if node.op_type in ("ConstantOfShape", "Range") else set()
        elif node.op_type in DECIDING:
            inputs = set(node.input[: DECIDING[node.op_type]])
        else:
            found = opdef.find(node.op_type, opsets.get(node.domain, 1), node.domain)
            inputs = {n for k, n in enumerate(node.input) if k in found.static}
        static |= inputs
        decides = not static.isdisjoint(node.output)
        if decides:
            static |= set(node.input) if node.op_type not in ("Shape", "Size") else set()
        for branch in node.attribute if node.op_type == "If" else ():
            static |= {value.name for value in branch.g.output} if decides else set()
            add_static(branch.g, opsets, static)


def name_sizes(proto: onnx.ModelProto) -> None:
    """Give every size of the inputs but 1 and 0 a name; those of outputs are inferred."""
    for value in proto.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value > 1:
                dim.dim_param = f"d{dim.dim_value}"
    for value in proto.graph.output:
        for k, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{k}"
    del proto.graph.value_info[:]


def fuse_everything(
    proto: onnx.ModelProto, options: MappingOptions | None = None
) -> tuple[KernelSource, bytes]:
    """One kernel for all nodes of a model, and the model with it.

    Raises:
        UnsupportedError: A node may not join, or a stage refuses.
    """
    model, group = group_of_everything(proto)
    composed = compose(group, model.opset_imports)
    return with_kernel(model, group, composed, options or MappingOptions())


def group_of_everything(proto: onnx.ModelProto) -> tuple[ir.Model, FusionGroup]:
    """All nodes of a model as one group.

    Raises:
        UnsupportedError: A node may not join.
    """
    model = load_model(proto)
    nodes = tuple(node for node in model.graph if node.op_type != "Constant")
    if not nodes:
        raise UnsupportedError("everything is folded")
    for node in nodes:
        if not (verdict := may_join(Candidate(node, model.opset_imports))):
            raise UnsupportedError(f"{node.op_type}: {verdict.reason}")
    group = group_of(nodes, model.opset_imports)
    if not group.inputs:
        raise UnsupportedError("nothing is read")
    return model, group


def with_kernel(
    model: ir.Model, group: FusionGroup, composed: Composed, options: MappingOptions
) -> tuple[KernelSource, bytes]:
    """The kernel of a group, and its model with it."""
    checked = check(composed.definition, sizes=composed.interface.sizes)
    name = composed.definition.name
    kernel = compile_kernel(checked, composed.interface, name, options).source
    replacement = Replacement(group, kernel.name, composed.inputs, composed.outputs)
    return kernel, ir.to_proto(rewrite(model, [replacement])).SerializeToString()


# ---------------------------------------------------------------------- from kernels to answers


def native_level() -> Level:
    """The highest level this machine runs."""
    if not is_x86(platform.machine()):
        return levels()[0]
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    needed = {"v4": "avx512vl", "v3": "avx2"}
    return next(lv for lv in reversed(levels()) if needed.get(lv.name, "") in flags)


def build(kernels: Sequence[KernelSource], path: Path, toolchain: Toolchain) -> None:
    """One library; kernels share translation units, so that the prelude is read less often.

    Raises:
        ToolchainError: One of them does not compile.
    """
    unique = tuple({kernel.name: kernel for kernel in kernels}.values())
    level = native_level()
    parts = [unique[k::UNITS] for k in range(UNITS) if unique[k::UNITS]]
    units = [merged(part, level, k) for k, part in enumerate(parts)]
    toolchain.link(toolchain.compile([*units, *shell_units(unique, (level,))]), path)


def merged(kernels: Sequence[KernelSource], level: Level, number: int) -> Unit:
    """Kernels as one translation unit."""
    from tcfuse.codegen.prelude import kernel_prelude

    first, *others = kernels
    head = kernel_unit(first, level)
    text = "\n".join([head.text, *(k.text.replace(kernel_prelude(), "") for k in others)])
    return Unit(f"batch{number}.cpp", text, level)


def run_batch(batch: Sequence[Runnable], outcome: Outcome, toolchain: Toolchain) -> None:
    """Build and run cases; where they do not build together, one by one."""
    if not batch:
        return
    with tempfile.TemporaryDirectory(prefix="tcfuse-conformance-") as name:
        library = Path(name) / "kernels.so"
        try:
            build([kernel for item in batch for kernel in item.kernels], library, toolchain)
        except ToolchainError as error:
            if len(batch) == 1:
                outcome.failed[batch[0].name] = f"does not compile: {error}"
                return
            half = len(batch) // 2
            run_batch(batch[:half], outcome, toolchain)
            run_batch(batch[half:], outcome, toolchain)
            return
        run_apart(batch, library, outcome)


def run_apart(batch: Sequence[Runnable], library: Path, outcome: Outcome) -> None:
    """Run cases in another process, in a new one after each crash."""
    waiting = list(batch)
    while waiting:
        job = library.with_name("batch.pickle")
        job.write_bytes(pickle.dumps((str(library), waiting)))
        command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, "--job"]
        if __name__ == "__main__":
            command[2] = "tests.conformance.compiled"
        root = Path(__file__).parents[2]
        done = subprocess.run(
            [*command, str(job)], capture_output=True, text=True, check=False, cwd=root
        )
        answers = [line.partition("\t") for line in done.stdout.splitlines() if "\t" in line]
        for name, _, text in answers:
            if text == "equal":
                outcome.equal.append(name)
            elif text.startswith("left: "):
                outcome.refused[name] = text
            else:
                outcome.failed[name] = text
        waiting = waiting[len(answers) :]
        if waiting:
            reason = f"the process ends with status {done.returncode}: {done.stderr[-300:]}"
            outcome.failed[waiting.pop(0).name] = reason


def run_job(path: Path) -> None:
    """Run the cases of a file; a line each says how it went."""
    library, batch = pickle.loads(path.read_bytes())
    for item in batch:
        try:
            answer = item.answer(Path(library))
        except Exception as error:  # reported, so that the next case runs
            answer = f"{type(error).__name__}: {error}"
        print(f"{item.name}\t{' '.join(answer.split())[:600]}", flush=True)  # noqa: T201


def run_ready(item: Ready, library: Path) -> str:
    """``equal``, or what is wrong with the outputs of one case."""
    model = onnx.load_from_string(item.model)
    assert not [n for n in model.graph.node if n.domain != "tcfuse"], "a node was left behind"
    session = open_session(ir.from_proto(model), library, threads=2)
    for given, wanted in item.runs:
        names = {value.name for value in session.get_inputs()}
        feeds = {name: to_value(array) for name, array in given.items() if name in names}
        results = session.run_with_ort_values(list(wanted), feeds)
        for (name, want), result in zip(wanted.items(), results, strict=True):
            got = to_array(result)
            assert got.dtype == want.dtype, f"{name} is {got.dtype}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                agree(got, want, rounds=item.rounds, case=item.name)
    return "equal"


# ---------------------------------------------------------------------- all of them


def run_cases(
    chosen: Iterable[Any], *, symbolic: bool = False, progress: bool = False
) -> Outcome:
    """Every case through the compiler, in batches."""
    outcome = Outcome()
    toolchain = Toolchain.default(cache_dir(), current().cxx)
    told = 0
    for batch in batches(chosen, BATCH):
        ready = []
        for case in batch:
            make = partial(prepare, case, symbolic=symbolic)
            if (item := attempt(case, outcome, make)) is not None:
                ready.append(item)
        run_batch(ready, outcome, toolchain)
        if progress:
            told = tell(outcome, told)
    return outcome


def tell(outcome: Outcome, told: int) -> int:
    """Show how far it is, and the failures after the first ``told``; how many those are now."""
    for name, text in list(outcome.failed.items())[told:]:
        print(f"FAILED {name}: {text}", file=sys.stderr)  # noqa: T201
    counts = f"{outcome.inside} run, {len(outcome.failed)} failed"
    print(f"{counts}, {len(outcome.refused)} refused", file=sys.stderr, flush=True)  # noqa: T201
    return len(outcome.failed)


def attempt(case: Any, outcome: Outcome, make: Callable[[], T]) -> T | None:
    """What ``make`` makes of the case, or ``None`` with the reason noted."""
    try:
        return make()
    except (InputError, UnsupportedError) as reason:
        if any(text in str(reason) for text in OUTSIDE):
            outcome.outside[case.name] = str(reason)
        else:
            outcome.refused[case.name] = str(reason)
    except Exception as error:  # one bad case must not hide the others
        outcome.failed[case.name] = f"{type(error).__name__}: {error}"[:600]
    return None


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Consecutive lists of at most ``size`` items."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def report(outcome: Outcome, *, refusals: bool) -> int:
    """Print what became of some cases; the exit status says whether all were equal."""
    if refusals:
        for name, reason in (outcome.outside | outcome.refused).items():
            print(f"  {name}: {reason}")  # noqa: T201
    print(outcome.summary())  # noqa: T201
    return int(bool(outcome.failed))


def main() -> int:
    """Run cases and print what became of them; the exit status says whether all were equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_choice(parser, every=10)
    parser.add_argument("--symbolic", action="store_true", help="sizes get names")
    parser.add_argument("--refusals", action="store_true", help="list what was refused")
    parser.add_argument("--record", action="store_true", help="write what tcfuse ops shows")
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job is not None:
        run_job(arguments.job)
        return 0
    if arguments.record and not (arguments.all and arguments.slice == (1, 1)):
        parser.error("--record needs --all, in one run")
    outcome = run_cases(chosen(arguments, cases()), symbolic=arguments.symbolic, progress=True)
    if arguments.record:
        from tests.conformance.taken import write

        write(cases(), set(outcome.equal))
    return report(outcome, refusals=arguments.refusals)


if __name__ == "__main__":
    sys.exit(main())
