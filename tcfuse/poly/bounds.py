"""Which accesses are shown to stay inside their tensors, and which are checked at run time."""

from __future__ import annotations

from tcfuse.errors import UnsupportedError
from tcfuse.poly import isl
from tcfuse.poly.guards import guards
from tcfuse.poly.scop import Scop, Statement, accesses, affine_text
from tcfuse.tc.ast import Access, Const, Expr, Var, walk


def check_bounds(scop: Scop) -> tuple[int, int]:
    """How many accesses were proved, and how many are left to run-time checks.

    Raises:
        UnsupportedError: An affine access that nothing guards may leave its tensor.
    """
    proved = at_run_time = 0
    for statement in scop.statements:
        written = statement.comprehension
        guard_of = guards((written.value, *(let.value for let in written.lets)))
        target = Access(written.tensor, tuple(Var(n) for n in written.indices))
        for access in (target, *accesses(statement)):
            inside = [
                stays_inside(scop, statement, access, k) for k in range(len(access.subscripts))
            ]
            if all(inside):
                proved += 1
            elif False in inside and not guard_of.get(id(access)):
                raise UnsupportedError(f"an access of {access.tensor} may leave the tensor")
            else:
                at_run_time += 1
    return proved, at_run_time


def stays_inside(
    scop: Scop, statement: Statement, access: Access, position: int
) -> bool | None:
    """Whether one subscript lies inside its dimension in every instance of ``statement``.

    ``None`` when it depends on data.
    """
    subscript = access.subscripts[position]
    size = scop.checked.tensors[access.tensor].shape[position]
    ranges = {r.name: r for r in statement.ranges}
    if isinstance(subscript, Var) and subscript.name in ranges:
        r = ranges[subscript.name]
        if isinstance(r.low, Const) and r.low.value >= 0 and affine_text(r.high) == str(size):
            return True
    text = affine_text(subscript)
    lets = {let.name for let in statement.comprehension.lets}
    if text is None or _names(subscript) & lets:
        return None
    bounds = " and ".join(
        f"{affine_text(r.low)} <= {r.name} < {affine_text(r.high)}" for r in statement.ranges
    )
    head = f"[{', '.join(scop.checked.sizes)}] -> "
    outside = f"({text} < 0 or {text} >= {size})"
    where = f"{bounds} and {outside}" if bounds else outside
    names = ", ".join(statement.iterators)
    bad = isl.Set.read_from_str(scop.context, f"{head}{{ [{names}] : {where} }}")
    return bool(bad.intersect_params(scop.parameters).is_empty())


def _names(expr: Expr) -> set[str]:
    return {node.name for node in walk(expr) if isinstance(node, Var)}
