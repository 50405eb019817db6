"""How much an expression costs to compute, roughly: what inlining decides with."""

from __future__ import annotations

from dataclasses import dataclass

from tcfuse.tc.affine import affine
from tcfuse.tc.ast import Access, Binary, Call, Cast, Const, Expr, Select, Unary, Var
from tcfuse.tc.conditions import compared
from tcfuse.tc.pool import children, post_order

CHEAP_CALLS = frozenset(
    [
        "abs",
        "bitand",
        "bitnot",
        "bitor",
        "bitxor",
        "ceil",
        "copysign",
        "fabs",
        "floor",
        "fma",
        "fmax",
        "fmin",
        "isinf",
        "isnan",
        "roundeven",
        "shl",
        "shr",
        "sign",
        "trunc",
    ]
)
MOST_OPERATIONS, MOST_LOADS = 3, 2


@dataclass(frozen=True, slots=True)
class Work:
    """Cheap operations, loads, and whether there is anything expensive; branches count once."""

    operations: int = 0
    loads: int = 0
    expensive: bool = False

    def __add__(self, other: Work) -> Work:
        return Work(
            self.operations + other.operations,
            self.loads + other.loads,
            self.expensive or other.expensive,
        )

    def __or__(self, other: Work) -> Work:
        return Work(
            max(self.operations, other.operations),
            max(self.loads, other.loads),
            self.expensive or other.expensive,
        )

    @property
    def is_cheap(self) -> bool:
        """Whether computing it again costs less than storing and loading it."""
        return (
            self.operations <= MOST_OPERATIONS
            and self.loads <= MOST_LOADS
            and not self.expensive
        )


def work(expr: Expr, of_tensor: dict[str, Work]) -> Work:
    """The work of ``expr``; reading a tensor in ``of_tensor`` costs what that says."""
    memo: dict[int, Work] = {}
    for node in post_order((expr,)):
        operands = [memo[id(child)] for child in children(node)]
        memo[id(node)] = _own(node, operands, of_tensor)
    return memo[id(expr)]


def _own(node: Expr, operands: list[Work], of_tensor: dict[str, Work]) -> Work:
    if isinstance(node, Const | Var) or is_index_expression(node):
        return Work()
    if isinstance(node, Select):
        chosen = operands[1] | operands[2]
        if compared(node.condition) is not None:
            return chosen
        return chosen + operands[0] + Work(operations=1)
    total = sum(operands, Work())
    match node:
        case Access() if total.loads:  # the index is computed once a row
            return Work(loads=2, expensive=total.expensive)
        case Access(tensor):
            return total + of_tensor.get(tensor, Work(loads=1))
        case Call(function):
            cheap = function in CHEAP_CALLS
            return total + Work(operations=1, expensive=not cheap)
        case Binary("/" | "%"):
            return total + Work(operations=1, expensive=True)
        case Cast(_, Const()):
            return total
        case _:
            return total + Work(operations=1)


def is_index_expression(node: Expr) -> bool:
    """Whether ``node`` computes with indices and sizes only, which loops carry for free."""
    if not isinstance(node, Binary | Unary):
        return False
    return affine(node) is not None or compared(node) is not None


def operation_count(expr: Expr) -> int:
    """Distinct operations in ``expr``."""
    nodes = post_order((expr,))
    return sum(not isinstance(n, Const | Var) and not is_index_expression(n) for n in nodes)


def printed_size(expr: Expr) -> int:
    """Operations of ``expr`` as text, where what a ternary guards cannot be shared by a let."""
    tree: dict[int, int] = {}
    for node in post_order((expr,)):
        below = sum(tree[id(child)] for child in children(node))
        tree[id(node)] = min(below + (not isinstance(node, Const | Var)), _BEYOND)
    total, seen, stack = operation_count(expr), set[int](), [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Select):
            total += tree[id(node.then)] + tree[id(node.otherwise)]
            stack.append(node.condition)
        else:
            stack += children(node)
    return total


_BEYOND = 1 << 20  # large enough to be too large, and no larger
