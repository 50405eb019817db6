"""A checked definition in the form the polyhedral stages take, and its kernel's signature.

What a person may write and loops cannot run as it stands is written out:

* every variable has its range, every returned tensor its type;
* tensors start at zero (``tc.rebase``);
* sizes that are not affine are names of their own (``tc.derived_sizes``);
* a tensor that is defined again is another tensor, and a statement that reads other elements of
  what it changes reads a copy (``tc.versions``);
* a returned tensor that starts from what the caller's buffer holds starts from one more input.

What must hold of the sizes is checked once a call.  An empty range is fine, a tensor without
elements too; a negative extent is refused, as are a range that leaves the tensor it writes and
a read that leaves the tensor it reads.

Source: the range inference of Tensor Comprehensions; there preconditions are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tcfuse.errors import Span, TcError
from tcfuse.interface import Interface, Port
from tcfuse.tc.ast import (
    Binary,
    Comprehension,
    Def,
    Expr,
    Param,
    Var,
    post_order,
    walk,
)
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.derived_sizes import DerivedSizes, at_least_zero
from tcfuse.tc.input_sizes import input_sizes
from tcfuse.tc.limits import check_limits
from tcfuse.tc.linear import Linear, linear_of, linear_of_size, nonnegative
from tcfuse.tc.read_checks import Condition, Ranges, reads_inside
from tcfuse.tc.rebase import Affine, rebased
from tcfuse.tc.rename import free_name
from tcfuse.tc.unparse import unparse_expr
from tcfuse.tc.versions import Versions
from tcfuse.types import TensorType, size_names


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
        check_limits(checked)
        self.checked = checked
        self.taken = _names(checked)
        self.sizes = DerivedSizes(self.taken)
        self.bounds: dict[str, tuple[tuple[Linear, Linear], ...]] = {}
        self.shapes: dict[str, tuple[Linear, ...]] = {}
        self.origins: dict[str, tuple[Linear, ...]] = {}

    def build(self) -> KernelForm:
        """Everything."""
        definition = self.checked.definition
        for param in (*definition.params, *definition.returns):
            if param.type is not None:
                self.shapes[param.name] = tuple(map(_form, param.type.shape))
                zero = Linear.of(0)
                self.bounds[param.name] = tuple((zero, e) for e in self.shapes[param.name])
        old = {name: self.name(f"{name}_in") for name in self.checked.inout}
        versions = Versions(self.checked.tensors, self.shapes, old, self.name)
        for item in self.checked.statements:
            versions.add(self.statement(item), reduces=bool(item.reduction))
        body = versions.finish(self.checked.outputs)
        for condition in self.checked.preconditions:
            self.precondition(condition)
        for param in definition.returns:
            self.extents(param.name)
        params = (*definition.params, *(Param(old[n], self.type(n)) for n in old))
        returns = tuple(Param(p.name, self.type(p.name)) for p in definition.returns)
        return KernelForm(
            Def(definition.name, params, returns, body),
            self.interface(params, returns, _used(body)),
        )

    def statement(self, item: CheckedStatement) -> Comprehension:
        """A statement over tensors that start at zero."""
        written = item.comprehension
        ranges = {r.name: (self.raw(r.low), self.raw(r.high)) for r in item.ranges}
        statement, conditions = self.reads(written, ranges)
        for condition in conditions:
            self.read(condition)
        if written.tensor in self.bounds:
            self.inside(item, ranges)
        else:
            self.bounds[written.tensor] = tuple(ranges[v] for v in written.indices)
        affine = {v: (self.affine(low), self.affine(high)) for v, (low, high) in ranges.items()}
        if written.tensor not in self.shapes:
            found = [affine[v] for v in written.indices]
            self.shapes[written.tensor] = tuple(high - low for low, high in found)
            lows = tuple(low for low, _ in found)
            if any(low.terms or low.constant for low in lows):
                self.origins[written.tensor] = lows
            self.extents(written.tensor)
        statement = rebased(statement, affine, self.origins, self.subscript(ranges))
        return replace(statement, span=None, equivalent=None)

    def reads(
        self, statement: Comprehension, ranges: Ranges
    ) -> tuple[Comprehension, list[Condition]]:
        """What must hold for the statement's reads to stay inside."""
        return reads_inside(statement, ranges, self.bounds, self.subscript(ranges))

    def subscript(self, ranges: Ranges) -> Affine:
        """The forms of subscripts in a statement."""
        variables = frozenset(ranges)
        return lambda expr, lets: self.sizes.subscript(expr, lets, variables)

    def read(self, condition: Condition) -> None:
        """Check that a read stays inside, unless it is certain."""
        form, access = self.affine(condition.form), condition.access
        if nonnegative(condition.form):
            self.sizes.fact(form)
            return
        sentence = (
            f"{unparse_expr(access)} leaves dimension {condition.dimension} of {access.tensor} "
            f"unless {at_least_zero(condition.form)}"
        )
        self.sizes.require(form, sentence, access.span)

    def inside(self, item: CheckedStatement, ranges: Ranges) -> None:
        """Check that the statement stays inside the tensor it writes."""
        written = item.comprehension
        bounds = self.bounds[written.tensor]
        for d, (v, (first, end)) in enumerate(zip(written.indices, bounds, strict=True)):
            low, high = ranges[v]
            sentence = (
                f"{v} in {low}:{high} leaves dimension {d} of {written.tensor}, "
                f"which is {first}:{end}"
            )
            for form in (low - first, end - high):
                if nonnegative(form):
                    self.sizes.fact(self.affine(form))
                else:
                    self.sizes.require(self.affine(form), sentence, written.span)

    def extents(self, tensor: str) -> None:
        """Check that no dimension of ``tensor`` is negative."""
        bounds = self.bounds[tensor]
        for d, (extent, (low, high)) in enumerate(
            zip(self.shapes[tensor], bounds, strict=True)
        ):
            if nonnegative(high - low):
                self.sizes.fact(extent)
            else:
                sentence = f"the size {high - low} of dimension {d} of {tensor} is negative"
                self.sizes.require(extent, sentence)

    def raw(self, bound: Expr) -> Linear:
        """The form of a bound: over the definition's own names if it has one."""
        form = linear_of(bound, {})
        return self.sizes.affine(bound) if form is None else form

    def affine(self, form: Linear) -> Linear:
        """A form over size names, old and new ones."""
        return self.sizes.affine(form.expr)

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

    def interface(
        self, params: Sequence[Param], returns: Sequence[Param], used: Iterable[str]
    ) -> Interface:
        """The signature; names in the statements are ``used``."""
        sizes = self.sizes
        found = input_sizes(tuple(_ports(params)), sizes)
        shown = size_names(s for p in (*params, *returns) if p.type for s in p.type.shape)
        sizes.keep((*used, *shown))
        derived = (*found.solved, *sizes.derived)
        names = (*found.names, *(name for name, _ in derived))
        for name in self.checked.sizes:
            if name not in names:
                hint = f"add an input with a dimension {name}, or write a number"
                message = f"no input gives the size {name!r}"
                raise TcError(message, self.place(name), hint, code="TC38")
        return Interface(
            found.inputs,
            tuple(_ports(returns)),
            names,
            derived,
            tuple(sizes.checks.items()),
            tuple(sizes.facts),
        )

    def place(self, size: str) -> Span | None:
        """Where a size name stands first."""
        for param in self.checked.definition.returns:
            if param.type is not None and size in size_names(param.type.shape):
                return param.span
        for item in self.checked.statements:
            for r in item.comprehension.ranges:
                for node in (*walk(r.low), *walk(r.high)):
                    if node == Var(size) and isinstance(node, Var):
                        return node.span or r.span
        return self.checked.definition.span

    def name(self, wanted: str) -> str:
        """``wanted``, or something like it that is not taken."""
        name = free_name(wanted, self.taken)
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
        found.update(r.name for r in item.ranges)
        found.update(let.name for let in item.comprehension.lets)
    return found | _used(item.comprehension for item in checked.statements)


def _used(statements: Iterable[Comprehension]) -> set[str]:
    """Every name that stands in an expression."""
    found: set[str] = set()
    for statement in statements:
        bounds = (bound for r in statement.ranges for bound in (r.low, r.high))
        for expr in (*statement.values, *bounds):
            found.update(n.name for n in post_order(expr) if isinstance(n, Var))
    return found
