"""Types of pool nodes, each found once."""

from __future__ import annotations

from collections.abc import Mapping

from tcfuse.tc.ast import Access, Const, Expr, Var, children
from tcfuse.tc.pool import post_order, with_children
from tcfuse.tc.typing import Type, Weak, type_of
from tcfuse.types import DType, TensorType

# an operand of each type, so that one node is typed without looking below its operands
_STAND_IN_TYPES = {f"a_{dtype.tc}": TensorType(dtype, ()) for dtype in DType}
_STAND_INS: dict[Type, Expr] = {
    Weak.BOOL: Const(True),
    Weak.INT: Const(1),
    Weak.FLOAT: Const(1.0),
    **{dtype: Access(f"a_{dtype.tc}", ()) for dtype in DType},
}


class ExprTypes:
    """Types of the nodes of a pool over tensors whose types never change.

    Args:
        tensors: Type of every tensor; may grow.
    """

    def __init__(self, tensors: Mapping[str, TensorType]) -> None:
        self.tensors = tensors
        self._memo: dict[int, Type] = {}

    def __getitem__(self, expr: Expr) -> Type:
        """The type of ``expr``, a pool node."""
        found = self._memo.get(id(expr))
        if found is not None:
            return found
        for node in post_order((expr,), self._memo):
            self._memo[id(node)] = self._type(node)
        return self._memo[id(expr)]

    def _type(self, node: Expr) -> Type:
        match node:
            case Access(tensor):
                return self.tensors[tensor].dtype
            case Const() | Var():
                return type_of(node, _STAND_IN_TYPES)
        operands = tuple(_STAND_INS[self._memo[id(child)]] for child in children(node))
        return type_of(with_children(node, operands), _STAND_IN_TYPES)
