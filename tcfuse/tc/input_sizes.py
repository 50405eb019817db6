"""Which input dimension says what each size name is.

A name is read from the first dimension that consists of it alone.  One that occurs in sums
only, ``N`` in ``float(2*N) X``, is solved for: the dimension gets a name of its own, ``N`` is
half of it, and that it is a whole half is checked at every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcfuse.errors import TcError
from tcfuse.interface import Port
from tcfuse.tc.derived_sizes import DerivedSizes, at_least_zero
from tcfuse.tc.linear import Linear, linear_of_size
from tcfuse.types import Size, TensorType


@dataclass(frozen=True, slots=True)
class InputSizes:
    """What the inputs say.

    Attributes:
        inputs: With a name of its own for each dimension that another name is solved from.
        names: Names that dimensions give.
        solved: Names that were solved for, with their values as C text, in order.
    """

    inputs: tuple[Port, ...]
    names: tuple[str, ...]
    solved: tuple[tuple[str, str], ...]


def input_sizes(ports: Sequence[Port], sizes: DerivedSizes) -> InputSizes:
    """How the shapes of ``ports`` give the names in them; checks and facts go to ``sizes``.

    Raises:
        TcError: A name cannot be found: sums hold more than one of that kind.
    """
    shapes = [list(port.type.shape) for port in ports]
    computed = {name for name, _ in sizes.derived}
    names = dict.fromkeys(
        size
        for shape in shapes
        for size in shape
        if isinstance(size, str) and size.isidentifier() and size not in computed
    )
    solved: dict[str, str] = {}
    pending = [
        (i, d) for i, shape in enumerate(shapes) for d, size in enumerate(shape) if _sum(size)
    ]
    while pending:
        left = []
        for i, d in pending:
            form = _form(shapes[i][d])
            unknown = [t for t in form.terms if t[0] not in {*names, *solved, *computed}]
            # what is computed is known too late to solve for something with it
            if len(unknown) > 1 or (unknown and any(a in computed for a, _ in form.terms)):
                left.append((i, d))
                continue
            if unknown:
                ((name, factor),) = unknown
                own = sizes.fresh("d")
                names[own] = None
                place = f"dimension {d} of {ports[i].name}"
                solved[str(name)] = _solve(sizes, own, form, str(name), factor, place)
                shapes[i][d] = own
            else:
                sizes.fact(form)
        if len(left) == len(pending):
            raise _unknown(ports, left, shapes, {*names, *solved})
        pending = left
    inputs = tuple(
        Port(p.name, TensorType(p.type.dtype, tuple(shape)))
        for p, shape in zip(ports, shapes, strict=True)
    )
    return InputSizes(inputs, tuple(names), tuple(solved.items()))


def _solve(
    sizes: DerivedSizes, own: str, form: Linear, name: str, factor: int, place: str
) -> str:
    """The C text of ``name``, where ``form`` is the size of the dimension called ``own``."""
    rest = form.without(name)
    numerator = (Linear.of(own) - rest) * (1 if factor > 0 else -1)
    if abs(factor) == 1:
        sizes.checks.setdefault(at_least_zero(numerator), f"{place} is too small to be {form}")
        return str(numerator)
    exact = f"{own} == {form}"
    sizes.checks.setdefault(exact, f"{place} is not {form} for any {name}")
    sizes.checks.setdefault(f"0 <= {name}", f"{place} is too small to be {form}")
    sizes.facts.setdefault(exact.replace("==", "="))
    return f"tcf_floor_div({numerator}, {abs(factor)})"


def _unknown(
    ports: Sequence[Port],
    left: Sequence[tuple[int, int]],
    shapes: list[list[Size]],
    known: set[str],
) -> TcError:
    i, d = left[0]
    names = [str(a) for a, _ in _form(shapes[i][d]).terms if a not in known]
    return TcError(
        f"the size {shapes[i][d]} of dimension {d} of {ports[i].name!r} does not say what "
        f"{' and '.join(names)} are",
        None,
        f"add an input with a dimension that is {names[0]} alone",
        code="TC38",
    )


def _sum(size: Size) -> bool:
    return isinstance(size, str) and not size.isidentifier()


def _form(size: Size) -> Linear:
    form = linear_of_size(size)
    assert form is not None, f"checked: {size}"
    return form
