"""What is tuned of a model, or of a file of definitions: each kernel once, at its sizes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from tcfuse.advising import Posed, consultation
from tcfuse.attempt import Attempt
from tcfuse.errors import OptionError
from tcfuse.forms import Form, blocked_form
from tcfuse.interface import Interface
from tcfuse.options import TARGETS, OptimizeOptions
from tcfuse.ort.arrays import run
from tcfuse.ort.inference import open_session, ort_errors
from tcfuse.ort.model_feeds import Wishes, model_feeds, shape_guesses
from tcfuse.ort.subgraph import instrumented
from tcfuse.pipeline import compile_model, optimize
from tcfuse.result import Result, Source, given
from tcfuse.run import Progress, Run
from tcfuse.store import Store
from tcfuse.targeting import resolved
from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.sema import check
from tcfuse.tuning.candidate import Subject
from tcfuse.tuning.tuned import Task
from tcfuse.wisdom.devices import device_of
from tcfuse.wisdom.problem import Layer, Problem

log = logging.getLogger(__name__)


UNSEEN = 64  # value of a size that neither the model's inputs nor a run of it tells


@dataclass(frozen=True, slots=True)
class Subjects:
    """The kernels of a model.

    Attributes:
        tasks: Each of them once, as often as a call of the model calls it.
        result: The model as it is optimized without what will be found; ``None`` where that was
            not needed to know them.
    """

    tasks: tuple[Task, ...]
    result: Result | None = None


def subjects_of_model(
    source: Source, *, threads: int = 1, progress: Progress = str, **options: Any
) -> Subjects:
    """The kernels that ``optimize`` tries for a model, in the form that it keeps.

    Those that it gives back as too slow are among them: tuned they may pay.

    Args:
        source: As for ``optimize``.
        threads: How many work on a call.
        progress: As for ``optimize``.
        options: As for ``optimize``.

    Raises:
        InputError: The model cannot be read.
        OptionError: An option is not known, or names what the model does not have.
        ToolchainError: There is no compiler, or it failed.
    """
    chosen = resolved(OptimizeOptions.of(**options))
    if chosen.layout == "portable":  # then it is known which form is kept
        return Subjects(tasks_of_form(Form.plain(source), chosen, threads, progress))
    result = optimize(source, progress=progress, **options)
    form = blocked_form(source, chosen, given(source)) if result.report.block else None
    tasks = tasks_of_form(form or Form.plain(source), chosen, threads, progress)
    return Subjects(tasks, result)


def tasks_of_form(
    form: Form, options: OptimizeOptions, threads: int = 1, progress: Progress = str
) -> tuple[Task, ...]:
    """The kernels of one form of a model; nothing is built or run."""
    asked = Run(options, Store.default(), progress, consultation(options, tries=False))
    model, plans, tried = compile_model(form, asked)
    seen = _Seen(model, Wishes(options.dim, options.input_shapes))
    tasks: dict[str, Task] = {}
    for attempt in tried:
        for task in _tasks_of(attempt, plans[0].sizes, seen, options.numerics, threads):
            key = task.problem.key
            before = tasks.get(key)
            tasks[key] = task if before is None else _joined(before, task)
    return tuple(tasks.values())


def subjects_of_definitions(
    definitions: Iterable[CheckedDef],
    sizes: Mapping[str, int],
    *,
    target: str = "cpu",
    numerics: str = "default",
    threads: int = 1,
) -> Subjects:
    """The kernels of definitions, one each.

    Args:
        definitions: Checked, with those numbers for sizes.
        sizes: Numbers for sizes by name.
        target: One of ``TARGETS``.
        numerics: Of the kernels.
        threads: How many work on a call.

    Raises:
        OptionError: A size has no number.
        UnsupportedError: A definition is beyond the compiler.
    """
    tasks = []
    for checked in definitions:
        form = kernel_form(checked)
        ready = check(form.definition, sizes=form.interface.sizes)
        name = checked.definition.name
        known = {n: v for n, v in sizes.items() if n in form.interface.sizes}
        if missing := _missing(form.interface, known):
            flags = " ".join(f"--size {size}=64" for size in missing)
            raise OptionError(f"{name}: say at which sizes it is tuned, for example {flags}")
        text = str(form.definition)
        subject = Subject(name, text, form.interface, known, target, threads, numerics)
        tasks.append(Task(subject, _problem(Layer.of(ready), known, subject), names=(name,)))
    return Subjects(tuple(tasks))


def selected(tasks: Sequence[Task], wanted: Sequence[str]) -> tuple[Task, ...]:
    """The kernels of those names, beginnings of names, or places from 1.

    Raises:
        OptionError: There is none for one of them.
    """
    found: dict[str, Task] = {}
    for text in wanted:
        hits = [
            task
            for place, task in enumerate(tasks, 1)
            if text == str(place) or any(name.startswith(text) for name in task.names)
        ]
        if not hits:
            names = ", ".join(task.subject.name for task in tasks)
            raise OptionError(f"no kernel {text!r}; kernels are {names or 'none'}")
        found |= {task.problem.key: task for task in hits}
    return tuple(found.values()) if wanted else tuple(tasks)


def _tasks_of(
    attempt: Attempt, named: Mapping[str, int], seen: _Seen, numerics: str, threads: int
) -> Iterable[Task]:
    """A region's kernel for each target that it has one for."""
    if attempt.compiled is None:
        return
    kernels, inputs = attempt.compiled.kernels, attempt.compiled.inputs
    interface, layer = kernels.interface, Layer.of(kernels.definition())
    known = Posed(layer, interface, inputs).sizes(named)
    for target, kernel in zip(TARGETS, (kernels.cpu, kernels.cuda), strict=True):
        if kernel is None:
            continue
        values = dict(known)
        if missing := _missing(interface, known):
            told = seen.sizes(inputs, interface)
            values |= {name: told.get(name, UNSEEN) for name in missing}
        subject = Subject(
            kernels.name, kernels.tc, interface, values, target, threads, numerics
        )
        yield Task(subject, _problem(layer, known, subject), names=(kernels.name,))


def _problem(layer: Layer, sizes: Mapping[str, int], subject: Subject) -> Problem:
    target = subject.target
    return layer.at(sizes, target, device_of(target), subject.numerics, subject.threads)


def _joined(task: Task, other: Task) -> Task:
    """One more call of the same kernel."""
    names = tuple(dict.fromkeys((*task.names, *other.names)))
    return replace(task, calls=task.calls + other.calls, names=names)


def _missing(interface: Interface, sizes: Mapping[str, int]) -> list[str]:
    """Names that have no value, and follow from no other."""
    derived = {name for name, _ in interface.derived}
    return [n for n in interface.sizes if n not in sizes and n not in derived]


class _Seen:
    """Shapes of a model's values, from a run of it, which is made when it is needed."""

    def __init__(self, model: ir.Model, wishes: Wishes) -> None:
        self._model, self._wishes = model, wishes
        self._shapes: dict[str, tuple[int, ...]] | None = None

    def sizes(self, inputs: Sequence[ir.Value], interface: Interface) -> dict[str, int]:
        """Values of the size names that dimensions of those inputs consist of."""
        if self._shapes is None:
            self._shapes = self._run()
        found: dict[str, int] = {}
        for value, port in zip(inputs, interface.inputs, strict=True):
            shape = self._shapes.get(str(value.name), ())
            for size, dim in zip(port.type.shape, shape, strict=False):
                if size in interface.sizes:
                    found.setdefault(str(size), max(dim, 1))
        return found

    def _run(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the main graph's values; none where the model does not run."""
        graph = self._model.graph
        names = [str(v.name) for node in graph for v in node.outputs if v.name]
        for shapes in shape_guesses(self._model, self._wishes):
            inputs = model_feeds(self._model, shapes)
            try:
                values = run(open_session(instrumented(self._model, names)), inputs)
            except ort_errors() as error:
                log.debug("the model does not run on %s: %s", shapes, error)
                continue
            seen = zip(names, values, strict=True)
            return {name: np.shape(value) for name, value in seen} | shapes
        return {}
