"""A definition as a function: compiled at its first call, then a matter of microseconds."""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcfuse.errors import InputError, TcError
from tcfuse.interface import Port
from tcfuse.layers.arguments import Target, given_outputs, input_array, output_target
from tcfuse.layers.compiling import Settings, load_definition
from tcfuse.layers.describe import describe, signature
from tcfuse.layers.dlpack import give, library_of
from tcfuse.ort.direct import DirectKernel, Plan
from tcfuse.ort.running import Bound
from tcfuse.tc.binding import bind_sizes, check_names, check_rank, check_type
from tcfuse.tc.checked import CheckedDef

MOST_PLANS = 256  # combinations of shapes that a layer remembers

Dims = tuple[int, ...]


class Layer:
    """One definition, as a function of arrays.

    It takes the parameters in order or by name, and returns the output, or a tuple when the
    definition returns several.  ``out=`` is an array, or a tuple of arrays, to write to.
    """

    def __init__(self, checked: CheckedDef, settings: Settings) -> None:
        self.__name__ = self.__qualname__ = checked.definition.name
        self.__doc__ = describe(checked)
        self.__signature__ = _signature(checked)
        self.checked, self.settings = checked, settings
        self._inputs, self._outputs = (
            tuple(Port(name, checked.tensors[name]) for name in names)
            for names in (checked.inputs, checked.outputs)
        )
        self._kinds = tuple((port.type.dtype.numpy, port.type.rank) for port in self._inputs)
        self._updated = tuple(name in checked.inout for name in checked.outputs)
        self._kernel: DirectKernel | None = None
        self._plans: dict[Dims, Plan] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return signature(self.checked)

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """The outputs for those inputs."""
        if named or len(arguments) != len(self._inputs):
            arguments = self._in_order(arguments, named)
        arrays, dims = self._arrays(arguments)
        kernel = self._kernel or self.compile()
        if out is not None or any(self._updated):
            return self._into(out, kernel, arrays, dims)
        plan = self._plans.get(dims) or self._plan(kernel, dims, arrays)
        results = [
            np.empty(shape, port.type.dtype.numpy)
            for shape, port in zip(plan.shapes, self._outputs, strict=True)
        ]
        self._run(kernel, plan, dims, (*arrays, *results))
        if (library := library_of(arguments)) is not None:
            results = [give(result, library) for result in results]
        return results[0] if len(results) == 1 else tuple(results)

    def bind(self, *arguments: Any, out: Any = None, **named: Any) -> Callable[[], Any]:
        """A function that computes the same arrays from the same arrays, again and again.

        Nothing is looked at again, so a call costs less.  What the inputs hold may change in
        between; the outputs are overwritten.  It may not run twice at the same time.

        Raises:
            InputError: An array would have to be copied first.
            TcError: The definition starts from what its outputs hold.
        """
        if any(self._updated):
            message = f"{self.__name__} starts from what its outputs hold and cannot be bound"
            raise TcError(message, hint="call it", code="TC40")
        arguments = self._in_order(arguments, named)
        arrays, dims = self._arrays(arguments)
        kernel = self._kernel or self.compile()
        plan = self._plans.get(dims) or self._plan(kernel, dims, arrays)
        targets = self._targets(given_outputs(out, self._outputs), plan, arrays)
        copied = [
            port.name
            for port, given, used in (
                *zip(self._inputs, arguments, arrays, strict=True),
                *((p, t.given, t.array) for p, t in zip(self._outputs, targets, strict=True)),
            )
            if given is not None and given is not used
        ]
        if copied:
            hint = "contiguous NumPy arrays that share no memory can"
            raise InputError(f"{', '.join(copied)} cannot be bound; {hint}")
        tensors = (*arrays, *(target.array for target in targets))
        bound = Bound.of(kernel, plan, dims, tensors, self.settings.threads)
        results = tuple(target.returned for target in targets)
        result = results[0] if len(results) == 1 else results

        def call() -> Any:
            self._call(bound)
            return result

        return call

    def compile(self) -> DirectKernel:
        """Compile now; else the first call does it.

        Raises:
            UnsupportedError: The definition is beyond the compiler.
            ToolchainError: There is no compiler, or it failed.
        """
        with self._lock:
            if self._kernel is None:
                start = time.perf_counter()
                self._kernel, fresh = load_definition(self.checked, self.settings)
                if fresh and not self.settings.quiet:
                    took = time.perf_counter() - start
                    sys.stderr.write(f"tcfuse: {self.__name__} compiled in {took:.1f} s\n")
            return self._kernel

    def _into(
        self, out: Any, kernel: DirectKernel, arrays: list[np.ndarray], dims: Dims
    ) -> Any:
        """Fill the caller's arrays, and new ones where it gave none."""
        given = given_outputs(out, self._outputs)
        for port, value, starts in zip(self._outputs, given, self._updated, strict=True):
            if starts and value is None:
                message = f"{self.__name__} starts from what {port.name!r} holds"
                raise TcError(message, hint="pass that array as out=", code="TC40")
            if starts:
                start = input_array(value, port)
                check_type(port.name, start, port.type.dtype)
                check_rank(port.name, start, port.type.rank)
                arrays.append(start.copy())
                dims += start.shape
        plan = self._plans.get(dims) or self._plan(kernel, dims, arrays)
        targets = self._targets(given, plan, arrays)
        self._run(kernel, plan, dims, (*arrays, *(target.array for target in targets)))
        for target in targets:
            target.finish()
        results = tuple(target.returned for target in targets)
        return results[0] if len(results) == 1 else results

    def _targets(
        self, given: Sequence[Any], plan: Plan, arrays: Sequence[np.ndarray]
    ) -> list[Target]:
        """Where each output goes, apart from what is read and from the others."""
        targets: list[Target] = []
        others = list(arrays)
        for port, value, shape in zip(self._outputs, given, plan.shapes, strict=True):
            targets.append(output_target(value, port, shape, others))
            others.append(targets[-1].memory)
        return targets

    def _run(
        self, kernel: DirectKernel, plan: Plan, dims: Dims, tensors: Sequence[np.ndarray]
    ) -> None:
        self._call(Bound.of(kernel, plan, dims, tensors, self.settings.threads))

    def _call(self, bound: Bound) -> None:
        if not bound():
            raise InputError(f"{self.__name__}: an index is out of range")

    def _arrays(self, arguments: Sequence[Any]) -> tuple[list[np.ndarray], Dims]:
        """The inputs as a kernel takes them, and all their dimensions."""
        arrays: list[np.ndarray] = []
        dims: Dims = ()
        for position, (dtype, rank) in enumerate(self._kinds):
            array = arguments[position]
            plain = type(array) is np.ndarray and array.dtype == dtype
            if not (plain and array.flags.c_contiguous and array.flags.aligned):
                array = input_array(array, self._inputs[position])
            if array.ndim != rank or array.dtype != dtype:
                port = self._inputs[position]
                check_type(port.name, array, port.type.dtype)
                check_rank(port.name, array, port.type.rank)
            arrays.append(array)
            dims += array.shape
        return arrays, dims

    def _plan(self, kernel: DirectKernel, dims: Dims, arrays: Sequence[np.ndarray]) -> Plan:
        """What a call needs, found once for each combination of shapes."""
        plan = kernel.plan(dims)
        if plan is None:
            names = (*self.checked.inputs, *self.checked.inout)
            bind_sizes(self.checked, dict(zip(names, arrays, strict=True)), {}, exact=True)
            raise TcError(f"{self.__name__}: {kernel.complaint(dims)}", code="TC30")
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        self._plans[dims] = plan
        return plan

    def _in_order(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The inputs in the order of the parameters."""
        names = self.checked.inputs
        found = dict(zip(names, arguments, strict=False))
        for name in named:
            if name in found:
                raise TcError(
                    f"{self.__name__}: the input {name!r} is given twice", code="TC32"
                )
        extra = [f"number {k + 1}" for k in range(len(names), len(arguments))]
        check_names(names, (*found, *extra, *named))
        found |= named
        return tuple(found[name] for name in names)


def _signature(checked: CheckedDef) -> inspect.Signature:
    """What ``help`` and editors show; a parameter that is no Python name is positional."""
    kinds = inspect.Parameter
    given = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in checked.inputs]
    return inspect.Signature([*given, kinds("out", kinds.KEYWORD_ONLY, default=None)])
