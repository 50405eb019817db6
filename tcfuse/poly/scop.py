"""From a checked TC to the polyhedral model: statements, iteration domains, access relations.

A reduction that resets becomes two statements, ``S3_init`` (the identity) and ``S3`` (the
update); every other comprehension becomes one.  A subscript that is not affine (it reads a
tensor) is related to every index of its dimension.

Source: "The Next 700 Accelerated Layers", section 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tcfuse.errors import UnsupportedError
from tcfuse.poly import isl
from tcfuse.tc.ast import (
    Access,
    Binary,
    Call,
    Comprehension,
    Const,
    Expr,
    Range,
    Select,
    Unary,
    Var,
    walk,
)
from tcfuse.tc.checked import CheckedDef, CheckedStatement


@dataclass(frozen=True, slots=True)
class Statement:
    """One polyhedral statement.

    Attributes:
        name: ``S3`` or ``S3_init``; the tuple name in every isl object.
        iterators: Names of the iterators, outermost first in textual order.
        ranges: Their half-open ranges.
        is_init: Stores the identity of the reduction that follows.
        comprehension: The comprehension it comes from.
        reduction: Iterators that are not on the left-hand side.
        is_copy: It is a promotion, to be placed where what it copies is read.
    """

    name: str
    iterators: tuple[str, ...]
    ranges: tuple[Range, ...]
    is_init: bool
    comprehension: Comprehension
    reduction: tuple[str, ...]
    is_copy: bool = False

    @property
    def is_update(self) -> bool:
        """Whether the statement combines with what its tensor holds."""
        return self.comprehension.assign.is_reduction and not self.is_init

    def instance(self) -> str:
        """``S3[i, j]``."""
        return f"{self.name}[{', '.join(self.iterators)}]"


@dataclass(frozen=True, slots=True, eq=False)
class Scop:
    """The polyhedral model of one kernel.

    Attributes:
        checked: The definition it models.
        context: isl context all members belong to.
        statements: In textual order.
        domain: Union of the iteration domains.
        reads: Instances to tensor elements read (an update reads its own tensor).
        writes: Instances to the tensor element written.
        parameters: What is known of the sizes: they are not negative, and the facts.
    """

    checked: CheckedDef
    context: isl.Context
    statements: tuple[Statement, ...]
    domain: isl.UnionSet
    reads: isl.UnionMap
    writes: isl.UnionMap
    parameters: isl.Set

    def __str__(self) -> str:
        return f"domain: {self.domain}\nreads: {self.reads}\nwrites: {self.writes}\n"

    def statement(self, name: str) -> Statement:
        """The statement called ``name``."""
        return next(s for s in self.statements if s.name == name)


def extract_scop(checked: CheckedDef, facts: Sequence[str] = ()) -> Scop:
    """The polyhedral model of ``checked``.

    Args:
        checked: A definition whose tensors all start at index zero.
        facts: Conditions on its sizes that always hold, as isl text.

    Raises:
        UnsupportedError: A tensor does not start at index zero, or no sizes fit the facts.
    """
    if checked.origins:
        name = next(iter(checked.origins))
        raise UnsupportedError(f"{name} does not start at index 0")
    context = isl.new_context()
    statements = tuple(_statements(checked.statements))
    head = f"[{', '.join(checked.sizes)}] -> "
    domains = [_domain_text(s) for s in statements]
    reads = [text for s in statements for text in _read_texts(s, checked)]
    writes = [_access_text(s, target(s), checked) for s in statements]
    known = " and ".join((*(f"{size} >= 0" for size in checked.sizes), *facts))
    parameters = isl.Set.read_from_str(context, f"{head}{{ : {known} }}")
    if parameters.is_empty():
        raise UnsupportedError(f"there are no sizes for which {' and '.join(facts)}")
    return Scop(
        checked,
        context,
        statements,
        isl.union_set(context, f"{head}{{ {'; '.join(domains)} }}"),
        isl.union_map(context, f"{head}{{ {'; '.join(reads)} }}"),
        isl.union_map(context, f"{head}{{ {'; '.join(writes)} }}"),
        parameters,
    )


def assuming(scop: Scop, facts: Sequence[str]) -> Scop:
    """``scop`` for the calls in which ``facts``, conditions on its sizes as isl text, hold."""
    if not facts:
        return scop
    text = f"[{', '.join(scop.checked.sizes)}] -> {{ : {' and '.join(facts)} }}"
    known = scop.parameters.intersect(isl.Set.read_from_str(scop.context, text))
    return replace(scop, parameters=known, domain=scop.domain.intersect_params(known))


def _statements(checked: Sequence[CheckedStatement]) -> Iterator[Statement]:
    for number, item in enumerate(checked):
        written = item.comprehension
        kept = len(written.indices)
        if written.assign.resets:
            yield Statement(
                f"S{number}_init", written.indices, item.ranges[:kept], True, written, ()
            )
        names = tuple(r.name for r in item.ranges)
        yield Statement(
            f"S{number}", names, item.ranges, False, written, item.reduction, item.is_copy
        )


def target(statement: Statement) -> Access:
    """The element a statement writes."""
    written = statement.comprehension
    return Access(written.tensor, tuple(Var(name) for name in written.indices))


def accesses(statement: Statement) -> Iterator[Access]:
    """Every tensor element that the right-hand side mentions, subscripts included."""
    if statement.is_init:
        return
    written = statement.comprehension
    for expr in written.values:
        yield from (node for node in walk(expr) if isinstance(node, Access))


def affine_text(expr: Expr) -> str | None:
    """``expr`` as isl writes it; ``None`` when it is not quasi-affine."""
    match expr:
        case Const(bool()) | Const(float()):
            return None
        case Const(value):
            return str(value)
        case Var(name):
            return name
        case Unary("-", operand):
            inner = affine_text(operand)
            return None if inner is None else f"(-{inner})"
        case Binary(operator, left, right):
            return _binary_text(operator, left, right)
        case Call("fmin" | "fmax", _) | Select() | Call() | Access():
            return None
        case _:
            return None


def _binary_text(operator: str, left: Expr, right: Expr) -> str | None:
    a, b = affine_text(left), affine_text(right)
    if a is None or b is None:
        return None
    match operator:
        case "+" | "-":
            return f"({a} {operator} {b})"
        case "*" if _constant(left) is not None or _constant(right) is not None:
            return f"({a} * {b})"
        case "/" if (_constant(right) or 0) > 0:
            return f"floor({a} / {b})"
        case "%" if (_constant(right) or 0) > 0:
            return f"({a} mod {b})"
        case "min" | "max":
            return f"{operator}({a}, {b})"
        case _:
            return None


def _constant(expr: Expr) -> int | None:
    match expr:
        case Const(int() as value):
            return value
        case Unary("-", Const(int() as value)):
            return -value
        case _:
            return None


def _domain_text(statement: Statement) -> str:
    bounds = []
    for r in statement.ranges:
        low, high = affine_text(r.low), affine_text(r.high)
        if low is None or high is None:
            raise UnsupportedError(f"the range of {r.name} is not affine")
        bounds.append(f"{low} <= {r.name} < {high}")
    return f"{statement.instance()} : {' and '.join(bounds) or '1 = 1'}"


def _read_texts(statement: Statement, checked: CheckedDef) -> Iterator[str]:
    if statement.is_update:
        yield _access_text(statement, target(statement), checked)
    seen: set[str] = set()
    for access in accesses(statement):
        text = _access_text(statement, access, checked)
        if text not in seen:
            seen.add(text)
            yield text


def access_map(scop: Scop, statement: Statement, access: Access) -> isl.Map:
    """From the instances of ``statement`` to the elements, inside the tensor, of ``access``."""
    head = f"[{', '.join(scop.checked.sizes)}] -> "
    text = _access_text(statement, access, scop.checked)
    return isl.Map.read_from_str(scop.context, f"{head}{{ {text} }}")


def _access_text(statement: Statement, access: Access, checked: CheckedDef) -> str:
    """``S3[i, j] -> X[i, o1] : 0 <= o1 < 8 and 0 <= i < 4 ...`` over the statement's domain."""
    shape = checked.tensors[access.tensor].shape
    let_names = {let.name for let in statement.comprehension.lets}
    subscripts, conditions = [], [_domain_text(statement).partition(" : ")[2]]
    for position, (expr, size) in enumerate(zip(access.subscripts, shape, strict=True)):
        text = affine_text(expr)
        used = {n.name for n in walk(expr) if isinstance(n, Var)}
        if text is None or used & let_names:
            text = f"o{position}_"
            conditions.append(f"0 <= {text} < {size}")
        elif not isinstance(expr, Var | Const):
            # a guarded access may leave the tensor where its guard is false
            conditions.append(f"0 <= {text} < {size}")
        subscripts.append(text)
    target = f"T_{access.tensor}[{', '.join(subscripts)}]"
    return f"{statement.instance()} -> {target} : {' and '.join(conditions)}"
