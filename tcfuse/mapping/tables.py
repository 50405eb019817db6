"""Functions of one 8-bit number are looked up in a table of all its 256 values.

A quantized model's activation between two integer operators is such a function, with a
division for every rounding in it.  A table of bytes fits vector registers, so where a few
operations make another number of a byte, the byte is what is looked up.

Rewrite:
    Y(i) = f(X(i))  ->  T(q) = f(uint8(q)) where q in 0:256;  Y(i) = T(int32(X(i)))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from tcfuse.tc.affine import affine
from tcfuse.tc.ast import (
    Access,
    AssignKind,
    Binary,
    Cast,
    Comprehension,
    Const,
    Expr,
    Range,
    Var,
)
from tcfuse.tc.checked import CheckedDef, CheckedStatement
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.lets import name_shared
from tcfuse.tc.pool import Pool, children, post_order
from tcfuse.tc.rename import free_name
from tcfuse.tc.simplify import Simplifier
from tcfuse.tc.work import work
from tcfuse.types import DType, TensorType

VALUES = 256
FEWEST_ELEMENTS = 16 * VALUES  # of a statement that a table pays for
FEWEST_OPERATIONS = 12  # of a function that costs more than to look up a number
FEWEST_BYTE_OPERATIONS = 6  # and than to look up a byte
LOWEST: Mapping[DType, int] = {DType.UINT8: 0, DType.INT8: -128}


def with_tables(checked: CheckedDef) -> CheckedDef:
    """``checked`` with a table for each costly function of one 8-bit element."""
    types = dict(checked.tensors)
    tables: dict[str, None] = {}
    statements: list[CheckedStatement] = []
    for item in checked.statements:
        if _instances(item) >= FEWEST_ELEMENTS and not item.is_copy:
            made, item = _tabulated(item, types)
            tables |= {table.comprehension.tensor: None for table in made}
            statements += made
        statements.append(item)
    if not tables:
        return checked
    whole = checked.whole | set(tables)
    return replace(checked, statements=tuple(statements), tensors=types, whole=whole)


def _instances(item: CheckedStatement) -> int:
    """How often a statement runs; a named size counts as many."""
    extents = (
        r.high.value - r.low.value
        if isinstance(r.low, Const) and isinstance(r.high, Const)
        else FEWEST_ELEMENTS
        for r in item.ranges
    )
    return int(prod(extents))


def _tabulated(
    item: CheckedStatement, types: dict[str, TensorType]
) -> tuple[list[CheckedStatement], CheckedStatement]:
    """Tables for a statement, whose types are added to ``types``, and what is left of it."""
    pool, written = Pool(), item.comprehension
    lets: dict[str, Expr] = {}
    for let in written.lets:
        lets[let.name] = pool.substitute(pool.add(let.value), lets)
    value = pool.substitute(pool.add(written.value), lets)
    known = ExprTypes(types)
    tables: list[CheckedStatement] = []
    reads: dict[int, Expr] = {}
    for function, argument in _functions(value, {r.name for r in item.ranges}, known, pool):
        kind = known[function]
        if not isinstance(kind, DType) or kind is DType.BOOL:
            continue
        name = free_name(f"{written.tensor}_table", types)
        types[name] = TensorType(kind, (VALUES,))
        tables.append(_table(name, function, argument, types, pool))
        lowest = LOWEST[types[argument.tensor].dtype]
        at: Expr = Cast(DType.INT32, argument)
        reads[id(function)] = pool.add(
            Access(name, (Binary("+", at, Const(-lowest)) if lowest else at,))
        )
    if not tables:
        return [], item
    left = pool.rewrite(value, lambda node: node, dict(reads))
    rest = _named(replace(written, value=left), types, pool)
    return tables, replace(item, comprehension=rest)


def _functions(
    value: Expr, variables: set[str], types: ExprTypes, pool: Pool
) -> Iterator[tuple[Expr, Access]]:
    """The largest costly parts of ``value`` that depend on one 8-bit element, and that.

    Of a part that is cheap but for bytes in it, those bytes instead.
    """
    arguments: dict[int, frozenset[int] | None] = {}
    read: dict[int, Access] = {}
    for node in post_order((value,)):
        found: frozenset[int] | None = frozenset()
        if isinstance(node, Access) and _varies(node, variables):
            read[id(node)] = node
            found = frozenset((id(node),)) if _is_argument(node, types) else None
        elif isinstance(node, Var) and node.name in variables:
            found = None
        else:
            below = [arguments[id(child)] for child in children(node)]
            known = [b for b in below if b is not None]
            found = frozenset().union(*known) if len(known) == len(below) else None
        arguments[id(node)] = found if found is None or len(found) <= 1 else None
    stack, seen = [value], set[int]()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        found = arguments[id(node)]
        if found and _is_costly(node, types) and not _is_cheap_but_for_bytes(node, types, pool):
            (argument,) = found
            yield node, read[argument]
        elif not isinstance(node, Access):
            stack += children(node)


def _varies(access: Access, variables: set[str]) -> bool:
    """Whether an access reads different elements in different instances."""
    return any(
        isinstance(node, Access) or (isinstance(node, Var) and node.name in variables)
        for node in post_order(access.subscripts)
    )


def _is_argument(access: Access, types: ExprTypes) -> bool:
    """Whether an access is an 8-bit element at a place that is no data."""
    plain = all(affine(subscript) is not None for subscript in access.subscripts)
    return plain and types.tensors[access.tensor].dtype in LOWEST


def _is_costly(function: Expr, types: ExprTypes) -> bool:
    """Whether computing ``function`` takes longer than looking it up."""
    cost = work(function, {})
    fewest = FEWEST_BYTE_OPERATIONS if types[function] in LOWEST else FEWEST_OPERATIONS
    return cost.expensive and cost.operations >= fewest


def _is_cheap_but_for_bytes(function: Expr, types: ExprTypes, pool: Pool) -> bool:
    """Whether ``function`` is no byte and costs little once the bytes in it are known."""
    if types[function] in LOWEST:
        return False
    known: dict[int, Expr] = {}
    for node in post_order((function,)):
        if types[node] in LOWEST and not isinstance(node, Access) and _is_costly(node, types):
            known[id(node)] = pool.intern(Cast(DType.INT8, Const(0)))
    return bool(known) and not _is_costly(pool.rewrite(function, lambda n: n, known), types)


def _table(
    name: str, function: Expr, argument: Access, types: Mapping[str, TensorType], pool: Pool
) -> CheckedStatement:
    """``name(q)`` is ``function`` where ``argument`` has its ``q``-th value."""
    dtype = types[argument.tensor].dtype
    index = Var("q")
    place: Expr = Binary("-", index, Const(-LOWEST[dtype])) if LOWEST[dtype] else index
    number = pool.add(Cast(dtype, place))
    value = pool.rewrite(function, lambda n: number if n is argument else n, {})
    domain = Range("q", Const(0), Const(VALUES))
    written = Comprehension(name, ("q",), AssignKind.SET, value, (domain,))
    return CheckedStatement(_named(written, types, pool), (domain,), ())


def _named(
    statement: Comprehension, types: Mapping[str, TensorType], pool: Pool
) -> Comprehension:
    """``statement`` with what it uses several times named."""
    known = ExprTypes(types)
    simplifier = Simplifier(pool, known, statement.ranges)
    return name_shared(statement, known, simplifier, declared=False)
