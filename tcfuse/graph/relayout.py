"""Keeps more of a graph of ONNX Runtime's making in its blocked layout.

ONNX Runtime changes the layout back before every operator that it has no blocked kernel for.
Here such an operator works on the blocked value instead (``graph.blocked_rules``), where
something behind it wants it blocked again.  Changes of layout then meet and go away, and what
crosses from one kernel to the next is blocked.

Rewrite:
    ReorderOutput -> Mul -> ReorderInput   ->   Mul on blocked tensors
"""

from __future__ import annotations

import onnx_ir as ir

from tcfuse.graph.blocked import NCHWC, block_of_node
from tcfuse.graph.blocked_nodes import BlockedNodes
from tcfuse.graph.blocked_rules import rule_of, shrinks, twin_of
from tcfuse.graph.rewrite import drop_unused
from tcfuse.graph.symbols import dims


def relayout(model: ir.Model) -> None:
    """Let operators of the main graph work on blocked values, in place."""
    block = next((b for node in model.graph if (b := block_of_node(node))), 0)
    if block:
        _Relayout(model, block).run()


class _Relayout:
    """The state of one pass.

    Attributes:
        wanted: Values that some reader would rather have blocked.
        read: What the operators read that have been replaced.
    """

    def __init__(self, model: ir.Model, block: int) -> None:
        self.graph, self.make = model.graph, BlockedNodes(model, block)
        self.wanted: set[ir.Value] = set()
        self.read: list[ir.Value] = []

    def run(self) -> None:
        """Convert in topological order, so that a value's producer is final when it is read."""
        nodes = list(self.graph)
        for node in reversed(nodes):
            if any(self._wants(user) for v in node.outputs[:1] for user, _ in v.uses()):
                self.wanted.add(node.outputs[0])
        for node in nodes:
            if _is_reorder_input(node):
                self._cancel(node)
            elif (rule := rule_of(node)) is not None and self._asks(node):
                blocked = rule(self.make, node)
                if blocked is not None:
                    self._replace(node, blocked)
        for node in reversed(list(self.graph)):
            self._drop(node)
        drop_unused(self.read)

    def _wants(self, user: ir.Node) -> bool:
        """Whether ``user`` would rather read a blocked value."""
        return _is_reorder_input(user) or (rule_of(user) is not None and self._asks(user))

    def _asks(self, node: ir.Node) -> bool:
        """Whether ``node`` is better off on blocked values."""
        return node.outputs[0] in self.wanted or shrinks(node)

    def _cancel(self, node: ir.Node) -> None:
        """Read the blocked value that ``node`` would make again."""
        twin, (result,) = twin_of(node.inputs[0]), node.outputs
        if twin is not None and dims(twin) == dims(result) and not result.is_graph_output():
            result.replace_all_uses_with(twin)

    def _replace(self, node: ir.Node, blocked: ir.Value) -> None:
        """Make what ``node`` made of ``blocked``; who wants it plain has it reordered."""
        old = node.outputs[0]
        new = self.make.reorder_output(blocked, dims(old) or (), node)
        new.type, new.shape = old.type, old.shape
        new.meta.update(old.meta)
        name, old.name = old.name, None
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        new.name = name
        self.read += [value for value in node.inputs if value is not None]
        self.graph.remove(node, safe=True)

    def _drop(self, node: ir.Node) -> None:
        """Remove a change of layout that nobody reads."""
        is_read = any(v.uses() or v.is_graph_output() for v in node.outputs)
        if node.domain == NCHWC and not is_read:
            self.graph.remove(node, safe=True)


def _is_reorder_input(node: ir.Node) -> bool:
    """Whether ``node`` puts channels into blocks, from before the pixels."""
    reorders = node.domain == NCHWC and node.op_type == "ReorderInput"
    return reorders and not node.attributes.get_int("channels_last", 0)
