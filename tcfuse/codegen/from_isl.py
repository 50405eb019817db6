"""isl's AST of a schedule tree, as kernel loops with polynomial bounds.

Source: Grosser, Verdoolaege, Cohen, "Polyhedral AST Generation Is More Than Scanning
Polyhedra", TOPLAS 37(4), 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TypedDict

from tcfuse.codegen.kernel_ast import Block, Guard, Instance, Loop, Node, is_uniform, loops
from tcfuse.mapping.blocking import block_sizes
from tcfuse.mapping.lanes import LANES, PARALLEL
from tcfuse.mapping.spreading import SPREAD
from tcfuse.mapping.tiles import SEPARATE
from tcfuse.poly import isl
from tcfuse.poly.polynomial import Polynomial, floor_divided, put_text
from tcfuse.poly.scop import Scop
from tcfuse.poly.separation import isolated
from tcfuse.poly.transforms import UNROLL
from tcfuse.poly.tree import Band, Domain, Filter, Leaf, Mark, Sequence, Tree
from tcfuse.poly.tree_isl import to_isl


def nests(scop: Scop, tree: Domain) -> list[Block]:
    """The loop nests of a kernel, one for each part of the outermost sequences, in order."""
    return [
        block
        for names, child in _parts(tree.child, tuple(s.name for s in scop.statements))
        for block in [_generate(scop, names, child)]
        if block
    ]


def _parts(tree: Tree, names: tuple[str, ...]) -> list[tuple[tuple[str, ...], Tree]]:
    if not isinstance(tree, Sequence):
        return [(names, tree)]
    return [part for f in tree.filters for part in _parts(f.child, f.statements)]


def _generate(scop: Scop, names: tuple[str, ...], child: Tree) -> Block:
    build = isl.AstBuild.from_context(scop.parameters)
    instances = isl.part_of(scop.domain, names)
    if instances.is_empty():  # what is known of the sizes leaves nothing to do
        return ()
    schedule = to_isl(Domain(instances, _with_depths(child, 0)))
    schedule = isl.without_marks(schedule, {UNROLL: isl.unrolled, SEPARATE: isolated})
    block = _block(build.node_from_schedule(schedule), _NO_MARKS)
    if all(is_uniform(loop) for loop in loops(block) if loop.lanes):
        return block
    apart = isl.separated(schedule, LANES)  # lanes cannot decide which statements run
    return _block(build.node_from_schedule(apart), _NO_MARKS)


def _with_depths(tree: Tree, depth: int) -> Tree:
    """``tree`` with the number of loops around each mark in its name: ``lanes@2``.

    isl leaves out loops that run once, and names the others by their depth: ``c2``.
    """
    match tree:
        case Mark(name, child):
            return Mark(f"{name}@{depth}", _with_depths(child, depth))
        case Band():
            return replace(tree, child=_with_depths(tree.child, depth + tree.depth))
        case Sequence(filters):
            return Sequence(
                tuple(replace(f, child=_with_depths(f.child, depth)) for f in filters)
            )
        case Domain() | Filter():
            return replace(tree, child=_with_depths(tree.child, depth))
        case Leaf():
            return tree


class _Flags(TypedDict):
    lanes: bool
    parallel: bool
    spread: bool
    block: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Marks:
    """Marks that wait for the loop they are about.

    Attributes:
        iterator: That loop's iterator; empty when there are none.
    """

    iterator: str = ""
    names: frozenset[str] = frozenset()

    def flags(self) -> _Flags:
        """What the marks say of the loop."""
        block = next((sizes for name in self.names if (sizes := block_sizes(name))), ())
        return {
            "lanes": LANES in self.names,
            "parallel": PARALLEL in self.names,
            "spread": SPREAD in self.names,
            "block": block,
        }


_NO_MARKS = _Marks()


def _block(node: isl.AstNode, marks: _Marks) -> Block:
    """The loops of ``node``; what is outside the marked loop runs in one turn of it."""
    found: list[Node] = []
    apart: list[Node] = []
    for part in _parts_of(node):
        if marks.names and not _holds(part, marks.iterator):
            apart.extend(_node(part, _NO_MARKS))
            continue
        found.extend(_once(tuple(apart), marks))
        apart.clear()
        found.extend(_node(part, marks))
    return _joined((*found, *_once(tuple(apart), marks)))


def _joined(block: Block) -> Block:
    """``block`` with one loop for neighbours that are the same loop of one turn.

    isl takes such a loop apart when what is inside has an order; but what is inside shares
    registers.  Parallel loops are phases, which share none.
    """
    found: list[Node] = []
    for node in block:
        last = found[-1] if found else None
        if isinstance(node, Loop) and isinstance(last, Loop) and not node.parallel:
            one_turn = (node.high - node.low).number == 1
            if one_turn and node == replace(last, body=node.body):
                found[-1] = replace(last, body=_joined((*last.body, *node.body)))
                continue
        found.append(node)
    return tuple(found)


def _parts_of(node: isl.AstNode) -> list[isl.AstNode]:
    if isl.kind_of(node) != "block":
        return [node]
    children = node.block_get_children()
    count = children.n_ast_node()
    return [part for k in range(count) for part in _parts_of(children.get_ast_node(k))]


def _holds(node: isl.AstNode, iterator: str) -> bool:
    """Whether a loop with that iterator is ``node``, or is in the branches of it."""
    match isl.kind_of(node):
        case "for_":
            return bool(node.for_get_iterator().get_id().get_name() == iterator)
        case "mark":
            return True  # another mark of the same band, or of the band that takes over
        case "if_":
            branches = [node.if_get_then_node()]
            if node.if_has_else_node():
                branches.append(node.if_get_else_node())
            return any(_holds(p, iterator) for b in branches for p in _parts_of(b))
        case _:
            return False


def _node(node: isl.AstNode, marks: _Marks) -> Block:
    match isl.kind_of(node):
        case "mark":
            name, _, depth = node.mark_get_id().get_name().partition("@")
            inner = _Marks(f"c{depth}", frozenset({name}))
            if marks.iterator == inner.iterator:
                inner = _Marks(inner.iterator, marks.names | inner.names)
                return _block(node.mark_get_node(), inner)
            return _once(_block(node.mark_get_node(), inner), marks)
        case "if_":
            otherwise: Block = ()
            if node.if_has_else_node():
                otherwise = _block(node.if_get_else_node(), marks)
            condition = _condition(node.if_get_cond())
            return (Guard(condition, _block(node.if_get_then_node(), marks), otherwise),)
        case "for_":
            return _loop(node, marks)
        case kind:
            assert kind == "user", f"unexpected AST node {kind}"
            return (_instance(node.user_get_expr()),)


def _once(body: Block, marks: _Marks) -> Block:
    """``body``, inside one turn of the marked loop that isl left out."""
    if not marks.names or not body:
        return body
    once = Polynomial(), Polynomial.constant(1)
    return (Loop(marks.iterator, *once, body, **marks.flags()),)


def _loop(node: isl.AstNode, marks: _Marks) -> Block:
    iterator = node.for_get_iterator().get_id().get_name()
    low = _polynomial(node.for_get_init())
    body = _block(node.for_get_body(), _NO_MARKS)
    if node.for_is_degenerate():
        return _once(tuple(_replaced(item, iterator, low) for item in body), marks)
    step = _polynomial(node.for_get_inc()).number or 1
    condition = node.for_get_cond()
    bound = _polynomial(condition.op_get_arg(1))
    inclusive = isl.operation_of(condition) == "le"
    high = bound + Polynomial.constant(int(inclusive))
    if step != 1:  # count the iterations: c = low + step * c
        value = low + Polynomial.constant(step) * Polynomial.factor(iterator)
        body = tuple(_replaced(item, iterator, value) for item in body)
        high = floor_divided(high - low + Polynomial.constant(step - 1), step)
        low = Polynomial()
    return (Loop(iterator, low, high, body, **marks.flags()),)


def _replaced(node: Node, name: str, value: Polynomial) -> Node:
    """``node`` with an iterator that has one value only replaced by it."""
    match node:
        case Instance(statement, position):
            return Instance(statement, tuple(p.put(name, value) for p in position))
        case Loop():
            body = tuple(_replaced(n, name, value) for n in node.body)
            low, high = node.low.put(name, value), node.high.put(name, value)
            return replace(node, low=low, high=high, body=body)
        case Guard():
            then = tuple(_replaced(n, name, value) for n in node.then)
            otherwise = tuple(_replaced(n, name, value) for n in node.otherwise)
            return Guard(put_text(node.condition, name, value), then, otherwise)


def _instance(call: isl.AstExpr) -> Instance:
    name = call.op_get_arg(0).get_id().get_name()
    count = call.op_get_n_arg()
    return Instance(name, tuple(_polynomial(call.op_get_arg(k)) for k in range(1, count)))


def _polynomial(expr: isl.AstExpr) -> Polynomial:
    kind = isl.kind_of(expr)
    if kind == "id":
        return Polynomial.factor(expr.get_id().get_name())
    if kind == "int":
        return Polynomial.constant(int(expr.get_val().to_python()))
    return _operation(expr)


def _operation(expr: isl.AstExpr) -> Polynomial:
    kind = isl.operation_of(expr)
    parts = [expr.op_get_arg(k) for k in range(expr.op_get_n_arg())]
    if kind in ("cond", "select"):
        condition, then, otherwise = _condition(parts[0]), parts[1], parts[2]
        text = f"(({condition}) ? ({_polynomial(then)}) : ({_polynomial(otherwise)}))"
        return Polynomial.factor(text)
    values = [_polynomial(part) for part in parts]
    if kind == "minus":
        return -values[0]
    if kind == "add":
        return values[0] + values[1]
    if kind == "sub":
        return values[0] - values[1]
    if kind == "mul":
        return values[0] * values[1]
    if kind in ("fdiv_q", "pdiv_q", "div"):
        return floor_divided(values[0], values[1].number or 1)
    if kind in ("pdiv_r", "zdiv_r"):
        divisor = values[1].number or 1
        return values[0] - Polynomial.constant(divisor) * floor_divided(values[0], divisor)
    assert kind in ("min", "max"), f"unexpected operation {kind}"
    text = reduce(lambda a, b: f"tcf_{kind}({a}, {b})", (str(v) for v in values))
    return Polynomial.factor(text)


def _condition(expr: isl.AstExpr) -> str:
    symbols = {"eq": "==", "le": "<=", "lt": "<", "ge": ">=", "gt": ">"}
    kind = isl.operation_of(expr)
    if kind in ("and_", "and_then", "or_", "or_else"):
        joint = " && " if kind in ("and_", "and_then") else " || "
        return joint.join(
            f"({_condition(expr.op_get_arg(k))})" for k in range(expr.op_get_n_arg())
        )
    assert kind in symbols, f"unexpected condition {kind}"
    return (
        f"{_polynomial(expr.op_get_arg(0))} {symbols[kind]} {_polynomial(expr.op_get_arg(1))}"
    )
