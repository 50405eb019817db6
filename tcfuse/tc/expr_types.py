"""Types of pool nodes, each found once."""

from __future__ import annotations

from collections.abc import Mapping

from tcfuse.tc.ast import Access, Expr
from tcfuse.tc.pool import children, post_order
from tcfuse.tc.typing import Type, node_type
from tcfuse.types import TensorType


class ExprTypes:
    """Types of the nodes of a pool over tensors whose types never change.

    Args:
        tensors: Type of every tensor.
    """

    def __init__(self, tensors: Mapping[str, TensorType]) -> None:
        self.tensors = tensors
        self._memo: dict[int, Type] = {}

    def __getitem__(self, expr: Expr) -> Type:
        """The type of ``expr``, a pool node."""
        for node in post_order((expr,), self._memo):
            self._memo[id(node)] = self._type(node)
        return self._memo[id(expr)]

    def _type(self, node: Expr) -> Type:
        if isinstance(node, Access):  # its rank may be about to change
            return self.tensors[node.tensor].dtype
        operands = tuple(self._memo[id(child)] for child in children(node))
        return node_type(node, operands, self.tensors, {})
