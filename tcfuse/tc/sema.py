"""What a definition means: every name, type and range, or the reason why it means nothing.

Statements are checked in order, each against the tensors known before it.  A tensor's shape
comes from its declaration, or else from the ranges of the first statement that writes it; a
declared shape is in turn the range of the indices that write it first.

Source: "The Next 700 Accelerated Layers", ACM TACO 16(4), 2019, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable

from tcfuse.errors import TcError
from tcfuse.tc.ast import Binary, Comprehension, Const, Def, Expr, Param, Range, Var
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.linear import Linear, linear_of, linear_of_size, nonnegative
from tcfuse.tc.ranges import Bounds, Inferred, Read, infer
from tcfuse.tc.scope import Scope, reads_of, variables_of
from tcfuse.tc.typing import Type, assignable, is_bool, resolve, spell, type_of
from tcfuse.types import DType, Size, TensorType, size_names


def check(definition: Def, *, affine: bool = True, sizes: Iterable[str] = ()) -> CheckedDef:
    """``definition`` with all names, types and ranges resolved.

    Args:
        definition: As parsed.
        sizes: Size names that may be used in values although no shape or range has them.
        affine: Insist that every extent of a tensor is affine in the sizes; otherwise inferred
            extents may hold minima, maxima and floor divisions.

    Raises:
        TcError: It is ill-formed.
    """
    checker = _Checker(definition, affine=affine)
    checker.sizes.update(dict.fromkeys(sizes))
    return checker.check()


class _Checker:
    """The state after a number of statements."""

    def __init__(self, definition: Def, *, affine: bool) -> None:
        self.definition, self.affine = definition, affine
        self.declared: dict[str, TensorType] = {}
        self.sizes: dict[str, None] = {}
        self.tensors: dict[str, TensorType] = {}
        self.bounds: dict[str, tuple[Bounds, ...]] = {}
        self.origins: dict[str, tuple[Expr, ...]] = {}
        self.preconditions: dict[Expr, None] = {}
        written = [*(s.tensor for s in definition.body), *(p.name for p in definition.returns)]
        self.unwritten = dict.fromkeys(written)

    def check(self) -> CheckedDef:
        """Check everything."""
        definition = self.definition
        if definition.name in BUILTINS:
            raise TcError(f"{definition.name!r} is a built-in function", definition.span)
        self.declarations()
        scopes = [self.scope(statement) for statement in definition.body]
        statements = tuple(map(self.statement, scopes))
        for param in definition.returns:
            if param.name not in self.tensors:
                raise TcError(f"{param.name!r} is returned but never written", param.span)
        return CheckedDef(
            definition,
            statements,
            self.tensors,
            tuple(self.sizes),
            self.origins,
            tuple(self.preconditions),
        )

    def declarations(self) -> None:
        """Take in the parameters and the returns."""
        definition = self.definition
        seen: set[str] = set()
        for param in (*definition.params, *definition.returns):
            if param.name in seen:
                raise TcError(f"{param.name!r} is already defined", param.span)
            if param.name in BUILTINS:
                raise TcError(f"{param.name!r} is a built-in function", param.span)
            seen.add(param.name)
            if param.type is not None:
                self.declaration(param, param.type)
        for param in definition.params:
            if param.type is None:
                raise TcError(f"the parameter {param.name!r} has no type", param.span)
            self.tensors[param.name] = param.type
        for param in (*definition.params, *definition.returns):
            if param.name in self.sizes:
                raise TcError(f"{param.name!r} is both a size and a tensor", param.span)

    def declaration(self, param: Param, declared: TensorType) -> None:
        """Take in one declared type."""
        self.declared[param.name] = declared
        self.sizes.update(dict.fromkeys(size_names(declared.shape)))
        for size in declared.shape:
            form = linear_of_size(size)
            if form is None:
                message = f"the size {size!r} of {param.name!r} is not affine"
                raise TcError(message, param.span, "give the product a name of its own")
            if not form.terms and form.constant < 0:
                raise TcError(f"the size {size} of {param.name!r} is negative", param.span)
        self.bounds[param.name] = tuple(map(_bounds_of_size, declared.shape))

    def scope(self, statement: Comprehension) -> Scope:
        """Take in the sizes that only the ranges of ``statement`` use."""
        scope = Scope.of(statement)
        for name in scope.size_names():
            if name in self.tensors or name in self.unwritten:
                message = f"the tensor {name!r} cannot be used in a range"
                raise TcError(message, statement.span, "bounds depend on sizes only")
            self.sizes.setdefault(name)
        return scope

    def statement(self, scope: Scope) -> CheckedStatement:
        """Check one statement and record what it writes."""
        statement = scope.statement
        self.target(statement)
        scope.check_names(self.sizes, self.tensors, self.unwritten)
        variables = variables_of(scope, self.sizes)
        reduction = variables[len(statement.indices) :]
        if reduction and not statement.assign.is_reduction:
            raise TcError(
                f"{reduction[0]!r} is a reduction variable, but '=' is not a reduction",
                statement.span,
                f"use '+=!' or another reduction, or make it an index of {statement.tensor!r}",
            )
        kind = self.types(scope)
        inferred = self.ranges(scope, variables)
        self.preconditions.update(dict.fromkeys(inferred.preconditions))
        ranges = tuple(
            Range(v, inferred.bounds[v].low, inferred.bounds[v].high, statement.span)
            for v in variables
        )
        self.write(statement, kind, ranges)
        return CheckedStatement(statement, ranges, reduction)

    def target(self, statement: Comprehension) -> None:
        """Check the left-hand side."""
        name, span = statement.tensor, statement.span
        if any(name == p.name for p in self.definition.params):
            hint = "write to a new name and return that"
            raise TcError(f"the input {name!r} cannot be written", span, hint)
        if name in BUILTINS:
            raise TcError(f"{name!r} is a built-in function", span)
        if name in self.sizes:
            raise TcError(f"{name!r} is both a size and a tensor", span)
        known = self.tensors.get(name) or self.declared.get(name)
        if known and known.rank != len(statement.indices):
            found = len(statement.indices)
            raise TcError(f"the rank of {name!r} is {known.rank}, not {found}", span)
        kind = statement.assign
        if kind.is_reduction and not kind.resets and name not in self.tensors:
            hint = f"write '{kind.value}!' to start from the neutral element"
            raise TcError(f"{name!r} is reduced into before it is written", span, hint)

    def types(self, scope: Scope) -> DType:
        """The type the statement's tensor has; all its expressions are checked."""
        statement, names = scope.statement, dict[str, Type]()
        for let in statement.lets:
            names[let.name] = type_of(let.value, self.tensors, names)
        for bound in (b for r in statement.ranges for b in (r.low, r.high)):
            scope.check_bound(bound, type_of(bound, self.tensors, names))
        for exists in statement.exists:
            type_of(exists, self.tensors, names)
        value = type_of(statement.value, self.tensors, names)
        adds = statement.assign.operator in ("+", "*")
        if is_bool(value) and adds:
            message = f"'{statement.assign.value}' is not defined on bool"
            raise TcError(message, statement.span, "cast the value to a number")
        known = self.tensors.get(statement.tensor) or self.declared.get(statement.tensor)
        if known is None:
            dtype = resolve(value)
            # A sum that nobody asked to be stored in 16 bits is not.
            return dtype.compute if adds else dtype
        if not assignable(known.dtype, value):
            name = known.dtype.tc
            message = f"{spell(value)} does not fit into {statement.tensor!r} of type {name}"
            raise TcError(message, statement.span, f"cast it: {name}(...)")
        return known.dtype

    def ranges(self, scope: Scope, variables: tuple[str, ...]) -> Inferred:
        """The range of every variable."""
        statement = scope.statement
        explicit: dict[str, Bounds] = {}
        declared: dict[str, Bounds] = {}
        for r in statement.ranges:
            if _is_reversed(r):
                raise TcError(f"the range of {r.name!r} ends before it starts", r.span)
            explicit[r.name] = Bounds(scope.inline(r.low), scope.inline(r.high))
        reads: list[Read] = []
        if len(explicit) < len(variables):
            target, bounds = statement.tensor, self.bounds.get(statement.tensor)
            reads = reads_of(scope, self.bounds)
            if bounds and target in self.tensors:
                indices = zip(statement.indices, bounds, strict=True)
                reads += [Read(target, Var(v, statement.span), b) for v, b in indices]
            elif bounds:
                declared = dict(zip(statement.indices, bounds, strict=True))
        lets = {let.name: let.value for let in statement.lets}
        inferred = infer(variables, explicit, declared, reads, lets, statement.span)
        for name, found in inferred.bounds.items():
            for bound in (found.low, found.high) if name not in explicit else ():
                if isinstance(bound, Binary):
                    form = linear_of(bound, {})
                    self.must_be_affine(statement, f"a bound of {name!r}", form)
        return inferred

    def write(self, statement: Comprehension, dtype: DType, ranges: tuple[Range, ...]) -> None:
        """Record that ``statement`` has written its tensor."""
        name, written = statement.tensor, ranges[: len(statement.indices)]
        if name not in self.bounds:
            self.bounds[name] = tuple(Bounds(r.low, r.high) for r in written)
            if any(r.low != Const(0) for r in written):
                self.origins[name] = tuple(r.low for r in written)
        elif statement.ranges:
            self.inside(statement, written)
        if name in self.tensors:
            return
        self.unwritten.pop(name)
        if name in self.declared:
            self.tensors[name] = self.declared[name]
        else:
            shape = tuple(self.extent(statement, r) for r in written)
            self.tensors[name] = TensorType(dtype, shape)

    def extent(self, statement: Comprehension, written: Range) -> Size:
        """The size of the dimension that ``written`` covers."""
        if written.low == Const(0) and isinstance(written.high, Var):
            return written.high.name
        low, high = linear_of(written.low, {}), linear_of(written.high, {})
        if low is not None and high is not None:
            self.must_be_affine(statement, f"the extent of {written.name!r}", high - low)
            return (high - low).size
        raise TcError(
            f"the extent of {written.name!r} is not affine in the sizes",
            statement.span,
            f"declare the shape of {statement.tensor!r} in the returns",
        )

    def must_be_affine(self, statement: Comprehension, what: str, form: Linear | None) -> None:
        """Raise when ``form`` cannot be handed to the polyhedral stages but has to be."""
        if self.affine and form is not None and not form.is_affine:
            raise TcError(
                f"{what} is {form}, which is not affine in the sizes",
                statement.span,
                "give every index an explicit range: 'where i in 0:N'",
            )

    def inside(self, statement: Comprehension, written: Iterable[Range]) -> None:
        """Raise when ``written`` cannot lie within the tensor's bounds."""
        for found, bounds in zip(written, self.bounds[statement.tensor], strict=True):
            if found.low == bounds.low and found.high == bounds.high:
                continue
            low, high = linear_of(found.low, {}), linear_of(found.high, {})
            least, most = linear_of(bounds.low, {}), linear_of(bounds.high, {})
            if low is None or high is None or least is None or most is None:
                continue
            if nonnegative(least - low - 1, 1) or nonnegative(high - most - 1, 1):
                raise TcError(
                    f"{found.name!r} runs from {low} to {high}, outside {statement.tensor!r}, "
                    f"which starts at {least} and ends at {most}",
                    statement.span,
                    f"declare the shape of {statement.tensor!r} in the returns",
                )


def _is_reversed(r: Range) -> bool:
    """Whether both ends are numbers and the wrong way round."""
    match r.low, r.high:
        case Const(low), Const(high):
            return low > high
        case _:
            return False


def _bounds_of_size(size: Size) -> Bounds:
    """The bounds of a dimension that starts at zero."""
    form = linear_of_size(size)
    assert form is not None
    return Bounds(Const(0), form.expr)
