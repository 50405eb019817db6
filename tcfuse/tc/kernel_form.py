"""A checked definition in the form the polyhedral stages take, and its kernel's signature.

What a person may write and loops cannot run as it stands is written out:

* every variable has its range, every returned tensor its type;
* tensors start at zero (``tc.rebase``);
* sizes that are not affine are names of their own (``tc.derived_sizes``);
* a statement that reads other elements of what it writes reads a copy (``tc.own_reads``);
* a returned tensor that starts from what the caller's buffer holds starts from one more input.

What must hold of the sizes is checked once a call.  An empty range is fine, a tensor without
elements too; a negative extent is refused, as are a range that leaves the tensor it writes and
a read that leaves the tensor it reads.

Source: the range inference of Tensor Comprehensions; there preconditions are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tcfuse.errors import TcError
from tcfuse.interface import Interface, Port
from tcfuse.tc.ast import Binary, Comprehension, Def, Expr, Param, Var, post_order
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.derived_sizes import DerivedSizes
from tcfuse.tc.input_sizes import input_sizes
from tcfuse.tc.linear import Linear, linear_of_size
from tcfuse.tc.own_reads import reading, reads_old_elements, whole
from tcfuse.tc.rebase import rebased
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import TensorType

MOST_STATEMENTS = 256
MOST_VARIABLES = 32


@dataclass(frozen=True, slots=True)
class KernelForm:
    """A definition for the polyhedral stages.

    Attributes:
        definition: Its text means the same.
        interface: The kernel's signature; its ports have the names of the parameters and
            returns, in order, and one more input for each output that starts from old elements.
    """

    definition: Def
    interface: Interface


def kernel_form(checked: CheckedDef) -> KernelForm:
    """``checked``, for a kernel.

    Args:
        checked: Any definition, checked with ``affine=False``.

    Raises:
        TcError: No kernel can know a size, or something is far too large.
    """
    return _Builder(checked).build()


class _Builder:
    """The statements written out so far."""

    def __init__(self, checked: CheckedDef) -> None:
        _check_limits(checked)
        self.checked = checked
        self.taken = _names(checked)
        self.sizes = DerivedSizes(self.taken)
        self.shapes: dict[str, tuple[Linear, ...]] = {}
        self.origins: dict[str, tuple[Linear, ...]] = {}

    def build(self) -> KernelForm:
        """Everything."""
        definition = self.checked.definition
        for param in (*definition.params, *definition.returns):
            if param.type is not None:
                self.shapes[param.name] = tuple(map(_form, param.type.shape))
        body = [s for item in self.checked.statements for s in self.statement(item)]
        for param in definition.returns:
            self.extents(param.name)
        # Last: where one of them says the same as a check above, that one says it better.
        for condition in self.checked.preconditions:
            self.precondition(condition)
        old = {name: self.name(f"{name}_in") for name in getattr(self.checked, "inout", ())}
        first = [whole(name, old[name], self.shapes[name]) for name in old]
        params = (*definition.params, *(Param(old[n], self.type(n)) for n in old))
        returns = tuple(Param(p.name, self.type(p.name)) for p in definition.returns)
        return KernelForm(
            Def(definition.name, params, returns, (*first, *body)),
            self.interface(params, returns),
        )

    def statement(self, item: CheckedStatement) -> Iterator[Comprehension]:
        """A statement over tensors that start at zero, with a copy before it if need be."""
        written = item.comprehension
        ranges = {
            r.name: (self.sizes.affine(r.low), self.sizes.affine(r.high)) for r in item.ranges
        }
        if written.tensor not in self.shapes:
            found = [ranges[v] for v in written.indices]
            self.shapes[written.tensor] = tuple(high - low for low, high in found)
            lows = tuple(low for low, _ in found)
            if any(low.terms or low.constant for low in lows):
                self.origins[written.tensor] = lows
            self.extents(written.tensor)
        else:
            self.inside(item, ranges)
        statement = rebased(written, ranges, self.origins)
        if reads_old_elements(statement, bool(item.reduction)):
            copy = self.name(f"{written.tensor}_old")
            yield whole(copy, written.tensor, self.shapes[written.tensor])
            statement = reading(statement, copy)
        yield replace(statement, span=None)

    def inside(self, item: CheckedStatement, ranges: dict[str, tuple[Linear, Linear]]) -> None:
        """Check that the statement stays inside the tensor it writes."""
        written = item.comprehension
        shape = self.shapes[written.tensor]
        lows = self.origins.get(written.tensor, (Linear.of(0),) * len(shape))
        for d, (v, least, extent) in enumerate(zip(written.indices, lows, shape, strict=True)):
            low, high = ranges[v]
            r = next(r for r in item.ranges if r.name == v)
            span = f"{unparse_expr(r.low)}:{unparse_expr(r.high)}"
            where = f"{written.tensor}, whose dimension {d} it leaves"
            self.sizes.require(low - least, f"{v} in {span} writes to {where}")
            self.sizes.require(least + extent - high, f"{v} in {span} writes to {where}")

    def extents(self, tensor: str) -> None:
        """Check that no dimension of ``tensor`` is negative."""
        shape = self.checked.tensors[tensor].shape
        for d, (extent, size) in enumerate(zip(self.shapes[tensor], shape, strict=True)):
            self.sizes.require(
                extent, f"the size {size} of dimension {d} of {tensor} is negative"
            )

    def precondition(self, condition: Expr) -> None:
        """Check a condition that range inference could not prove."""
        assert isinstance(condition, Binary)
        assert condition.operator == "<="
        less, more = self.sizes.affine(condition.left), self.sizes.affine(condition.right)
        sentence = f"the sizes do not satisfy {unparse_expr(condition)}"
        self.sizes.require(more - less, sentence)

    def type(self, tensor: str) -> TensorType:
        """The type of a tensor over affine sizes."""
        shape = tuple(extent.size for extent in self.shapes[tensor])
        return TensorType(self.checked.tensors[tensor].dtype, shape)

    def interface(self, params: Iterable[Param], returns: Iterable[Param]) -> Interface:
        """The signature."""
        sizes = self.sizes
        found = input_sizes(tuple(_ports(params)), sizes)
        derived = (*found.solved, *sizes.derived)
        names = (*found.names, *(name for name, _ in derived))
        for name in self.checked.sizes:
            if name not in names:
                hint = f"add an input with a dimension {name}, or write a number"
                span = self.checked.definition.span
                raise TcError(f"no input gives the size {name!r}", span, hint)
        return Interface(
            found.inputs,
            tuple(_ports(returns)),
            names,
            derived,
            tuple(sizes.checks.items()),
            tuple(sizes.facts),
        )

    def name(self, wanted: str) -> str:
        """``wanted``, or something like it that is not taken."""
        name = wanted
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _ports(params: Iterable[Param]) -> Iterator[Port]:
    for param in params:
        assert param.type is not None
        yield Port(param.name, param.type)


def _form(size: int | str) -> Linear:
    form = linear_of_size(size)
    assert form is not None, f"checked: {size}"
    return form


def _names(checked: CheckedDef) -> set[str]:
    """Every name that means something in the definition."""
    found = {*BUILTINS, *checked.tensors, *checked.sizes, checked.definition.name}
    for item in checked.statements:
        statement = item.comprehension
        found.update(r.name for r in item.ranges)
        found.update(let.name for let in statement.lets)
        for expr in (statement.value, *(let.value for let in statement.lets)):
            found.update(n.name for n in post_order(expr) if isinstance(n, Var))
    return found


def _check_limits(checked: CheckedDef) -> None:
    """Refuse what would take the polyhedral stages forever.

    Raises:
        TcError: There are too many statements or variables.
    """
    count = len(checked.statements)
    if count > MOST_STATEMENTS:
        message = f"{count} statements are too many for one kernel"
        raise TcError(message, checked.definition.span, f"at most {MOST_STATEMENTS}")
    for item in checked.statements:
        if len(item.ranges) > MOST_VARIABLES:
            message = f"{len(item.ranges)} variables are too many for one statement"
            raise TcError(message, item.comprehension.span, f"at most {MOST_VARIABLES}")
