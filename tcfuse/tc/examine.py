"""Everything there is to say about a text: what ``check`` would raise, and what comes after.

A definition that cannot be read is skipped up to the next ``def``; a statement that is wrong is
skipped, and so is every statement that needs what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from tcfuse.errors import Span, TcError
from tcfuse.tc.ast import Comprehension, Def, Var, post_order
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.diagnostics import Finding
from tcfuse.tc.parser import parse_each
from tcfuse.tc.scope import Scope
from tcfuse.tc.sema import Checker
from tcfuse.types import size_names


def examine(text: str, filename: str = "<tc>") -> tuple[Finding, ...]:
    """The findings about a file of definitions, in the order of the text."""
    definitions, errors = parse_each(text, filename)
    found = [Finding.of(error) for error in errors]
    for definition in definitions:
        found += examine_definition(definition)
    return tuple(sorted(found, key=_place))


def examine_definition(definition: Def) -> tuple[Finding, ...]:
    """The findings about one definition, in the order of the text."""
    run = _Examination(definition)
    return tuple(sorted(run.findings(), key=_place))


class _Examination:
    """The checks of one definition, which go on after an error."""

    def __init__(self, definition: Def) -> None:
        self.definition = definition
        self.checker = Checker(definition, affine=False)
        self.errors: list[TcError] = []
        self.broken: set[str] = set()

    def findings(self) -> list[Finding]:
        """All of them."""
        try:
            self.checker.declarations()
        except TcError as error:
            return [Finding.of(error)]
        scopes = [scope for s in self.definition.body if (scope := self.scope(s))]
        checked = [done for scope in scopes if (done := self.statement(scope))]
        if not self.errors:
            try:
                whole = self.checker.finish(tuple(checked))
                return [*whole.warnings, *_sizes_not_given(whole)]
            except TcError as error:
                self.errors.append(error)
        return [*map(Finding.of, self.errors), *self.checker.warnings]

    def scope(self, statement: Comprehension) -> Scope | None:
        """The names of a statement, if they can be told."""
        try:
            return self.checker.scope(statement)
        except TcError as error:
            self.errors.append(error)
            self.broken.add(statement.tensor)
            return None

    def statement(self, scope: Scope) -> CheckedStatement | None:
        """The statement if it is right; nothing is said when it needs one that is wrong."""
        target = scope.statement.tensor
        if self.broken.isdisjoint((target, *(read.tensor for read in scope.reads()))):
            try:
                return self.checker.statement(scope)
            except TcError as error:
                self.errors.append(error)
        self.broken.add(target)
        return None


def _sizes_not_given(checked: CheckedDef) -> Iterator[Finding]:
    """A warning for each size that no input has: a slip of the pen more often than not."""
    arrays = (*checked.inputs, *checked.inout)
    given = size_names(size for name in arrays for size in checked.tensors[name].shape)
    for name in checked.sizes:
        if name not in given:
            close = get_close_matches(name, given, 1, 0.5)
            hint = f"did you mean {close[0]!r}?" if close else "pass it in every call"
            message = f"no input gives the size {name!r}"
            yield Finding("TC38", "warning", message, _first_use(checked, name), hint)


def _first_use(checked: CheckedDef, size: str) -> Span | None:
    """Where a size first stands in a range, or else the definition."""
    for statement in checked.definition.body:
        for bound in (b for r in statement.ranges for b in (r.low, r.high)):
            for node in post_order(bound):
                if isinstance(node, Var) and node.name == size:
                    return node.span
    return checked.definition.span


def _place(finding: Finding) -> int:
    """Where a finding starts; those without a place come last."""
    span = finding.span
    return span.start if span is not None else 1 << 62
