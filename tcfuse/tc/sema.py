"""What a definition means: every name, type and range, or the reason why it means nothing.

Statements are checked in order, each against the tensors known before it.  A tensor's shape
comes from its declaration, or else from the ranges of the first statement that writes it; a
declared shape is in turn the range of the indices that write it first.

Source: "The Next 700 Accelerated Layers", ACM TACO 16(4), 2019, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from tcfuse.errors import Span, TcError
from tcfuse.tc.ast import Binary, Comprehension, Const, Def, Expr, Param, Range, Var
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.diagnostics import Finding
from tcfuse.tc.extents import HALF_OPEN, check_affine, check_inside, empty, extent_of
from tcfuse.tc.linear import linear_of, linear_of_size, nonnegative
from tcfuse.tc.ranges import Bounds, Inferred, Precondition, Read, check_possible, infer
from tcfuse.tc.scope import (
    SIZES_ONLY,
    Scope,
    guarded_reads_of,
    reads_of,
    redefined,
    size_and_tensor,
    variables_of,
)
from tcfuse.tc.typing import Type, assignable, is_bool, resolve, spell, type_of
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import DType, Size, TensorType, size_names

_DECLARE = "give it a type in the returns to read what the caller's buffer holds"


def check(definition: Def, *, affine: bool = True, sizes: Iterable[str] = ()) -> CheckedDef:
    """``definition`` with all names, types and ranges resolved.

    Args:
        definition: As parsed.
        sizes: Size names that may be used in values although no shape or range has them.
        affine: Insist on what the polyhedral stages take: extents of tensors that are affine
            in the sizes, and outputs that do not depend on what their buffers held.
            Otherwise extents may be anything computed from sizes.

    Raises:
        TcError: It is ill-formed.
    """
    checker = Checker(definition, affine=affine)
    checker.sizes.update(dict.fromkeys(sizes))
    checker.declarations()
    scopes = [checker.scope(statement) for statement in definition.body]
    statements = tuple(map(checker.statement, scopes))
    return checker.finish(statements)


class Checker:
    """The state after a number of statements: ``declarations`` first, ``finish`` last."""

    def __init__(self, definition: Def, *, affine: bool) -> None:
        self.definition, self.affine = definition, affine
        self.declared: dict[str, TensorType] = {}
        self.sizes: dict[str, None] = {}
        self.tensors: dict[str, TensorType] = {}
        self.bounds: dict[str, tuple[Bounds, ...]] = {}
        self.origins: dict[str, tuple[Expr, ...]] = {}
        self.preconditions: dict[Expr, None] = {}
        self.inout: dict[str, None] = {}
        self.warnings: list[Finding] = []
        # Tensors without a value so far, and what to do to read them all the same.
        self.unwritten = {s.tensor: "write it first" for s in definition.body}
        for p in definition.returns:
            self.unwritten[p.name] = "write it first" if p.type else _DECLARE

    def finish(self, statements: tuple[CheckedStatement, ...]) -> CheckedDef:
        """What is known at the end."""
        definition = self.definition
        returned = {p.name for p in definition.returns}
        for param in definition.returns:
            if param.name not in self.tensors:
                message = f"{param.name!r} is returned but never written"
                raise TcError(
                    message, param.span, "assign it, or do not return it", code="TC24"
                )
        read = {
            access.tensor for s in statements for access in Scope.of(s.comprehension).reads()
        }
        for s in statements:
            name = s.comprehension.tensor
            if name not in read | returned:
                read.add(name)
                message = f"{name!r} is neither returned nor read"
                span, hint = s.comprehension.target_span, f"return it: -> (..., {name})"
                self.warnings.append(Finding("TC21", "warning", message, span, hint))
        return CheckedDef(
            definition,
            statements,
            self.tensors,
            tuple(self.sizes),
            self.origins,
            tuple(self.preconditions),
            tuple(p.name for p in definition.returns if p.name in self.inout),
            tuple(self.warnings),
        )

    def declarations(self) -> None:
        """Take in the parameters and the returns."""
        definition = self.definition
        if definition.name in BUILTINS:
            raise redefined(definition.name, definition.span)
        seen: set[str] = set()
        for param in (*definition.params, *definition.returns):
            if param.name in seen:
                message = f"{param.name!r} is already defined"
                raise TcError(message, param.span, "rename it", code="TC23")
            if param.name in BUILTINS:
                raise redefined(param.name, param.span)
            seen.add(param.name)
            if param.type is not None:
                self.declaration(param, param.type)
        for param in definition.params:
            if param.type is None:
                message = f"the parameter {param.name!r} has no type"
                raise TcError(message, param.span, "write float(N) X", code="TC04")
            self.tensors[param.name] = param.type
        for param in (*definition.params, *definition.returns):
            if param.name in self.sizes:
                raise size_and_tensor(param.name, param.span)

    def declaration(self, param: Param, declared: TensorType) -> None:
        """Take in one declared type."""
        self.declared[param.name] = declared
        self.sizes.update(dict.fromkeys(size_names(declared.shape)))
        for size in declared.shape:
            form = linear_of_size(size)
            if form is None or not form.is_affine:
                message = f"the size {size!r} of {param.name!r} is not affine"
                hint = "give the product a name of its own"
                raise TcError(message, param.span, hint, code="TC05")
            if not form.terms and form.constant < 0:
                message = f"the size {size} of {param.name!r} is negative"
                raise TcError(message, param.span, "sizes start at 0", code="TC05")
        self.bounds[param.name] = tuple(map(_bounds_of_size, declared.shape))

    def scope(self, statement: Comprehension) -> Scope:
        """Take in the sizes that only the ranges of ``statement`` use."""
        scope = Scope.of(statement)
        for name in scope.size_names():
            if name in self.tensors or name in self.unwritten:
                message = f"the tensor {name!r} cannot be used in a range"
                raise TcError(message, scope.place_of(name), SIZES_ONLY, code="TC11")
            self.sizes.setdefault(name)
        return scope

    def statement(self, scope: Scope) -> CheckedStatement:
        """Check one statement and record what it writes."""
        statement = scope.statement
        self.target(statement)
        self.take_old(scope)
        scope.check_names(self.sizes, self.tensors, self.unwritten)
        variables = variables_of(scope, self.sizes)
        reduction = variables[len(statement.indices) :]
        if reduction and not statement.assign.is_reduction:
            raise self.no_reduction(scope, reduction[0])
        kind = self.types(scope)
        inferred = self.ranges(scope, variables)
        for precondition in inferred.preconditions:
            self.require(precondition)
        ranges = tuple(
            Range(v, inferred.bounds[v].low, inferred.bounds[v].high, statement.span)
            for v in variables
        )
        self.write(statement, kind, ranges)
        return CheckedStatement(statement, ranges, reduction)

    def no_reduction(self, scope: Scope, name: str) -> TcError:
        """The complaint about a reduction variable of an assignment that is no reduction."""
        message = f"{name!r} is a reduction variable, but '=' is not a reduction"
        tensor = scope.statement.tensor
        hint = f"use '+=!' or another reduction, or make it an index of {tensor!r}"
        if close := get_close_matches(name, self.sizes, 1):
            hint = f"did you mean {close[0]!r}? Otherwise {hint}"
        return TcError(message, scope.place_of(name), hint, code="TC20")

    def require(self, precondition: Precondition) -> None:
        """Have ``precondition`` checked at run time."""
        if precondition.condition not in self.preconditions:
            self.preconditions[precondition.condition] = None
            text = unparse_expr(precondition.condition)
            message = f"{text} is checked at run time, {precondition.reason}"
            self.warnings.append(Finding("TC30", "note", message, precondition.span))

    def target(self, statement: Comprehension) -> None:
        """Check the left-hand side."""
        name, span = statement.tensor, statement.target_span
        if any(name == p.name for p in self.definition.params):
            hint = "write to a new name and return that"
            raise TcError(f"the input {name!r} cannot be written", span, hint, code="TC16")
        if name in BUILTINS:
            raise redefined(name, span)
        if name in self.sizes:
            raise size_and_tensor(name, span)
        known = self.tensors.get(name) or self.declared.get(name)
        if known and known.rank != len(statement.indices):
            found = len(statement.indices)
            message = f"the rank of {name!r} is {known.rank}, not {found}"
            hint = "give it one index for each dimension"
            raise TcError(message, statement.left_span, hint, code="TC18")
        kind = statement.assign
        if kind.is_reduction and not kind.resets and name not in self.tensors:
            hint = f"write '{kind.value}!' to start from the neutral element"
            message = f"{name!r} is reduced into before it is written"
            if self.affine or all(name != p.name for p in self.definition.returns):
                raise TcError(message, span, hint, code="TC19")
            self.keep_old(name, message, span, hint)

    def take_old(self, scope: Scope) -> None:
        """Let returned tensors of a declared type be read before they are written."""
        for read in () if self.affine else scope.reads():
            name = read.tensor
            if name in self.unwritten and name in self.declared:
                message = f"{name!r} is read before it is written"
                self.tensors[name] = self.declared[name]
                del self.unwritten[name]
                self.keep_old(name, message, read.span, "write it first unless that is meant")

    def keep_old(self, name: str, why: str, span: Span | None, hint: str) -> None:
        """Note that ``name`` starts from what the caller's buffer holds."""
        self.inout[name] = None
        message = f"{why} and starts from what the caller's buffer holds"
        self.warnings.append(Finding("TC19", "warning", message, span, hint))

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
        if statement.assign.is_reduction and isinstance(value, DType) and value.bits < 8:
            value = value.compute  # as all arithmetic; the least element is that type's too
        adds = statement.assign.operator in ("+", "*")
        if is_bool(value) and adds:
            message = f"'{statement.assign.value}' is not defined on bool"
            hint = "cast the value to a number"
            raise TcError(message, statement.span, hint, code="TC31")
        known = self.tensors.get(statement.tensor) or self.declared.get(statement.tensor)
        if known is None:
            dtype = resolve(value)
            # A sum that nobody asked to be stored in 16 bits is not.
            return dtype.compute if adds else dtype
        if not assignable(known.dtype, value):
            name = known.dtype.tc
            message = f"{spell(value)} does not fit into {statement.tensor!r} of type {name}"
            span = statement.value.span or statement.span
            raise TcError(message, span, f"cast it: {name}(...)", code="TC17")
        return known.dtype

    def ranges(self, scope: Scope, variables: tuple[str, ...]) -> Inferred:
        """The range of every variable."""
        statement = scope.statement
        explicit: dict[str, Bounds] = {}
        declared: dict[str, Bounds] = {}
        for r in statement.ranges:
            explicit[r.name] = Bounds(scope.inline(r.low), scope.inline(r.high))
            if empty(r, explicit[r.name]):
                message, hint = f"the range of {r.name!r} is empty", HALF_OPEN
                self.warnings.append(Finding("TC26", "warning", message, r.span, hint))
        reads: list[Read] = []
        guarded: list[Read] = []
        if len(explicit) < len(variables):
            guarded = guarded_reads_of(scope, self.bounds)
            target, bounds = statement.tensor, self.bounds.get(statement.tensor)
            reads = reads_of(scope, self.bounds)
            if bounds and target in self.tensors:
                indices = zip(statement.indices, bounds, strict=True)
                reads += [Read(target, Var(v, statement.span), b) for v, b in indices]
            elif bounds:
                declared = dict(zip(statement.indices, bounds, strict=True))
        lets = {let.name: let.value for let in statement.lets}
        if not reads and not self.affine:
            check_possible(explicit, reads_of(scope, self.bounds), lets)
        inferred = infer(
            variables,
            explicit,
            declared,
            reads,
            lets,
            statement.span,
            indices=statement.indices,
            guarded=guarded,
        )
        for name, found in inferred.bounds.items():
            for bound in (found.low, found.high) if name not in explicit else ():
                if isinstance(bound, Binary):
                    what, form = f"a bound of {name!r}", linear_of(bound, {})
                    if self.affine and form is not None:
                        check_affine(statement, what, form)
        return inferred

    def write(self, statement: Comprehension, dtype: DType, ranges: tuple[Range, ...]) -> None:
        """Record that ``statement`` has written its tensor."""
        name, written = statement.tensor, ranges[: len(statement.indices)]
        if name not in self.bounds:
            self.bounds[name] = tuple(Bounds(r.low, r.high) for r in written)
            if any(r.low != Const(0) for r in written):
                self.origins[name] = tuple(r.low for r in written)
        elif statement.ranges:
            check_inside(statement, written, self.bounds[name])
        if name in self.tensors:
            return
        del self.unwritten[name]
        if name in self.declared:
            self.tensors[name] = self.declared[name]
        else:
            shape = tuple(self.extent(statement, r) for r in written)
            self.tensors[name] = TensorType(dtype, shape)

    def extent(self, statement: Comprehension, written: Range) -> Size:
        """The size of the dimension that ``written`` covers, which must not be negative."""
        if written.low == Const(0) and isinstance(written.high, Var):
            return written.high.name
        form = extent_of(statement, written)
        if self.affine:
            check_affine(statement, f"the extent of {written.name!r}", form)
        if not nonnegative(form):
            reason = f"for the range of {written.name!r}"
            self.require(Precondition.of(form, statement.left_span, reason))
        return form.size


def _bounds_of_size(size: Size) -> Bounds:
    """The bounds of a dimension that starts at zero."""
    form = linear_of_size(size)
    assert form is not None
    return Bounds(Const(0), form.expr)
