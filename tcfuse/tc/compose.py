"""One TC for a whole fusion group, in the shape that a polyhedral compiler makes fast code of.

Each node is lowered to statements and the statements are put one after the other.  Then views
disappear (``views``), pointwise producers move into their consumers (``inline``), statements
that choose by an index are split (``split``) and dimensions that are walked together are merged
(``coalesce``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from tcfuse.errors import UnsupportedError
from tcfuse.graph.plan import FusionGroup
from tcfuse.graph.symbols import dims
from tcfuse.interface import Interface, Port
from tcfuse.opdef import Kind, OpCall, OpDef, find
from tcfuse.tc.builtins import BUILTINS
from tcfuse.tc.ast import Access, Comprehension, Def, Expr, Param
from tcfuse.tc.coalesce import coalesce
from tcfuse.tc.draft import Draft, View
from tcfuse.tc.expr_types import ExprTypes
from tcfuse.tc.guards import unguarded, unproved
from tcfuse.tc.inline import inline, remove_dead
from tcfuse.tc.lets import name_shared
from tcfuse.tc.lower import Lowered, attributes_of, digest, lower, small_constant
from tcfuse.tc.lexer import KEYWORDS
from tcfuse.tc.pool import Pool, variables
from tcfuse.tc.rename import (
    canonical_indices,
    rename_sizes,
    rename_tensors,
    rename_text,
    rename_type,
)
from tcfuse.tc.simplify import Simplifier, literal
from tcfuse.tc.sizes import Sizes
from tcfuse.tc.split import split
from tcfuse.tc.units import drop_units
from tcfuse.tc.views import ViewError, solve_views
from tcfuse.types import DType, TensorType, size_names

MOST_NAMES = 4


class ComposeError(UnsupportedError):
    """A group cannot be composed; ``node`` is the member at fault."""

    def __init__(self, message: str, node: ir.Node) -> None:
        super().__init__(message)
        self.node = node


@dataclass(frozen=True, slots=True, eq=False)
class Composed:
    """A fusion group as one definition.

    Attributes:
        inputs: The group's inputs that the definition reads, in the order of its parameters.
        outputs: The group's outputs, in the order of its returns.
        baked: A digest of the nodes and of the constants that became part of the text.
    """

    definition: Def
    interface: Interface
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    baked: str


def compose(
    group: FusionGroup, opsets: Mapping[str, int], numerics: str = "default"
) -> Composed:
    """The definition of ``group``.

    Args:
        group: What to compose.
        opsets: Version of each operator domain the model imports.
        numerics: ``fast`` drops the rounding of 16-bit intermediates.

    Raises:
        ComposeError: A member cannot be expressed.
    """
    draft, sizes, builder = _Builder(group, opsets).build()
    pool = builder.pool
    try:
        draft = normalize(draft, pool, sizes, numerics)
    except ViewError as error:
        raise ComposeError(str(error), group.nodes[error.label]) from error
    return _Finisher(group, builder, sizes, numerics).composed(draft)


def normalize(draft: Draft, pool: Pool, sizes: Sizes, numerics: str = "default") -> Draft:
    """``draft`` without views, with few statements and few dimensions."""
    draft = coalesce(drop_units(draft, pool), pool, sizes)
    draft = drop_units(solve_views(draft, pool, sizes), pool)
    draft = replace(draft, body=tuple(canonical_indices(s, pool) for s in draft.body))
    draft = split(inline(draft, pool, numerics), pool)
    return coalesce(draft, pool, sizes)


class _Builder:
    """Puts the statements of a group's nodes one after the other."""

    def __init__(self, group: FusionGroup, opsets: Mapping[str, int]) -> None:
        self.group, self.opsets = group, opsets
        self.pool = Pool()
        self.names: dict[ir.Value, str] = {}
        self.tensors: dict[str, TensorType] = {}
        self.literals: dict[ir.Value, Expr] = {}
        self.body: list[Comprehension] = []
        self.views: list[View] = []
        self.baked = hashlib.sha256()
        self.sizes = Sizes()

    def build(self) -> tuple[Draft, Sizes, _Builder]:
        """The draft of the group, before any transformation."""
        group = self.group
        self.sizes = Sizes.bind(d for v in group.inputs if (d := dims(v)) is not None)
        for number, value in enumerate(group.inputs):
            self.names[value] = f"x{number}"
            type_ = self.tensors[f"x{number}"] = self._type(value, group.nodes[0])
            if 0 in type_.shape:
                raise ComposeError("an input has no elements", group.nodes[0])
        for number, value in enumerate(group.outputs):
            self.names[value] = f"o{number}"
        for position, node in enumerate(group.nodes):
            try:
                self._add(position, node)
            except ComposeError:
                raise
            except UnsupportedError as error:
                raise ComposeError(str(error), node) from error
        inputs = tuple(self.names[v] for v in group.inputs if v not in self.literals)
        outputs = tuple(self.names[v] for v in group.outputs)
        draft = Draft(inputs, outputs, self.tensors, tuple(self.body), tuple(self.views))
        return draft, self.sizes, self

    def _add(self, position: int, node: ir.Node) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = self.opsets.get(domain, self.opsets.get(node.domain, 1))
        definition = find(node.op_type, opset, domain)
        call = self._call(node, definition, opset)
        if not any(call.outputs):
            return  # nobody reads what it makes
        self.baked.update(digest(definition, call).encode())
        outputs = [
            self._output(v, t, node) for v, t in zip(node.outputs, call.outputs, strict=True)
        ]
        if definition.kind is Kind.VIEW and not any(call.outputs[1:]):
            source, result = node.inputs[0], outputs[0]
            assert source is not None
            assert result is not None
            self.views.append(View(self._name(source, node), result, position))
            return
        lowered = lower(definition, call)
        given = [
            v for k, v in enumerate(node.inputs) if v is not None and k not in definition.static
        ]
        self._instantiate(lowered, given, [name for name in outputs if name], node)

    def _call(self, node: ir.Node, definition: OpDef, opset: int) -> OpCall:
        return OpCall(
            node.op_type,
            opset,
            tuple(None if v is None else self._type(v, node) for v in node.inputs),
            tuple(self._type(v, node) if self._is_used(v) else None for v in node.outputs),
            attributes_of(node),
            tuple(small_constant(v) for v in node.inputs),
            definition.domain,
        )

    def _is_used(self, value: ir.Value | None) -> bool:
        if value is None or not value.name:
            return False
        return value in self.names or value.is_graph_output() or bool(value.uses())

    def _type(self, value: ir.Value, node: ir.Node) -> TensorType:
        dtype = None if value.dtype is None else DType.from_onnx(int(value.dtype))
        shape = dims(value)
        if dtype is None:
            raise ComposeError(f"{node.op_type} has an operand of type {value.dtype}", node)
        if shape is None:
            raise ComposeError(f"{node.op_type} has an operand of unknown rank", node)
        try:
            return TensorType(dtype, tuple(map(self.sizes.size, shape)))
        except UnsupportedError as error:
            raise ComposeError(str(error), node) from error

    def _output(self, value: ir.Value, type_: TensorType | None, node: ir.Node) -> str | None:
        if type_ is None:
            return None
        if 0 in type_.shape:
            raise ComposeError(f"{node.op_type} has an output without elements", node)
        name = self.names.setdefault(value, f"t{len(self.tensors)}")
        self.tensors[name] = type_
        return name

    def _name(self, value: ir.Value, node: ir.Node) -> str:
        name = self.names.get(value)
        if name is None:
            raise ComposeError(
                f"{node.op_type} reads {value.name}, which nothing provides", node
            )
        return name

    def _literal(self, value: ir.Value) -> Expr | None:
        """The one element of a constant input, as a literal of its type."""
        if value in self.literals:
            return self.literals[value]
        constant = small_constant(value)
        if constant is None or constant.size != 1 or self.names.get(value, "x")[0] != "x":
            return None
        self.literals[value] = self.pool.add(
            literal(_dtype_of(constant), constant.reshape(()).item())
        )
        return self.literals[value]

    def _instantiate(
        self, lowered: Lowered, given: list[ir.Value], made: list[str], node: ir.Node
    ) -> None:
        """Append the statements of a node with the names of this group."""
        if len(given) != len(lowered.inputs) or len(made) != len(lowered.outputs):
            raise ComposeError(f"the definition of {node.op_type} has another signature", node)
        literals: dict[str, Expr] = {}
        names = dict(zip(lowered.outputs, made, strict=True))
        for parameter, value in zip(lowered.inputs, given, strict=True):
            constant = self._literal(value)
            if constant is not None:
                literals[parameter] = constant
            else:
                names[parameter] = self._name(value, node)
        for local, type_ in lowered.tensors.items():
            if local not in names and local not in literals:
                names[local] = f"t{len(self.tensors)}"
                self.tensors[names[local]] = type_

        def rule(expr: Expr) -> Expr:
            if not isinstance(expr, Access):
                return expr
            known = literals.get(expr.tensor)
            return known or Access(names[expr.tensor], expr.subscripts)

        for s in lowered.body:
            value = self.pool.rewrite(s.value, rule, {})
            self.body.append(replace(s, tensor=names[s.tensor], value=value, span=None))


def _dtype_of(array: np.ndarray) -> DType:
    found = next((d for d in DType if d.numpy == array.dtype), None)
    if found is None:
        raise UnsupportedError(f"a constant of type {array.dtype}")
    return found


class _Finisher:
    """Gives a normalized draft its final names, lets and interface."""

    def __init__(
        self, group: FusionGroup, builder: _Builder, sizes: Sizes, numerics: str
    ) -> None:
        self.group, self.builder, self.sizes, self.numerics = group, builder, sizes, numerics

    def composed(self, draft: Draft) -> Composed:
        """The group's definition, interface and values."""
        group, builder = self.group, self.builder
        pool = builder.pool
        draft = _simplified(draft, pool)
        inputs = [v for v in group.inputs if builder.names[v] in draft.inputs]
        ports_in = [builder.tensors[builder.names[v]] for v in inputs]
        ports_out = [builder.tensors[builder.names[v]] for v in group.outputs]
        names = self._final_names(draft)
        types = [*ports_in, *ports_out, *draft.tensors.values()]
        used = self._used_sizes(draft, types)
        sizes = {old: f"n{k}" for k, old in enumerate(used)}
        ports_in = [rename_type(t, sizes) for t in ports_in]
        self._require_bound(used, sizes, ports_in)
        body = rename_sizes(rename_tensors(draft.body, names, pool), sizes, pool)
        tensors = {names[n]: rename_type(t, sizes) for n, t in draft.tensors.items()}
        final = tuple(_finished(s, pool, ExprTypes(tensors)) for s in body)
        in_names = [names[n] for n in draft.inputs]
        out_names = [names[n] for n in draft.outputs]
        definition = Def(
            name_of(group),
            tuple(Param(n, tensors[n]) for n in in_names),
            tuple(Param(n, tensors[n]) for n in out_names),
            final,
        )
        outs = [rename_type(t, sizes) for t in ports_out]
        interface = Interface(
            tuple(map(Port, in_names, ports_in)),
            tuple(map(Port, out_names, outs)),
            tuple(sizes.values()),
            tuple(
                (sizes[n], rename_text(t, sizes))
                for n, t in self.sizes.derived.items()
                if n in sizes
            ),
            (*self._checks(sizes), *_access_checks(body, ExprTypes(tensors), pool)),
        )
        baked = builder.baked.hexdigest()
        return Composed(definition, interface, tuple(inputs), group.outputs, baked)

    def _final_names(self, draft: Draft) -> dict[str, str]:
        names = {old: f"x{k}" for k, old in enumerate(draft.inputs)}
        names |= {old: f"o{k}" for k, old in enumerate(draft.outputs)}
        others = dict.fromkeys(s.tensor for s in draft.body if s.tensor not in names)
        return names | {old: f"t{k}" for k, old in enumerate(others)}

    def _used_sizes(self, draft: Draft, types: list[TensorType]) -> tuple[str, ...]:
        names = set(size_names(size for type_ in types for size in type_.shape))
        for s in draft.body:
            bounds = [bound for r in s.ranges for bound in (r.low, r.high)]
            names |= variables([s.value, *bounds]) - {r.name for r in s.ranges}
        return self.sizes.used(names)

    def _checks(self, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Relations between bound names that the shapes of the model imply."""
        for condition, sentence in self.sizes.checks:
            if set(size_names([condition])) <= names.keys():
                yield rename_text(condition, names), rename_text(sentence, names)

    def _require_bound(
        self, used: tuple[str, ...], names: Mapping[str, str], ports: list[TensorType]
    ) -> None:
        bound = {size for type_ in ports for size in type_.shape}
        for name in used:
            if name not in self.sizes.derived and names[name] not in bound:
                node = self.group.nodes[0]
                raise ComposeError("a size is the dimension of an unused input only", node)


def _simplified(draft: Draft, pool: Pool) -> Draft:
    """``draft`` with every value simplified and its variables in canonical names."""
    types = ExprTypes(draft.tensors)
    body = tuple(
        canonical_indices(
            replace(s, value=pool.rewrite(s.value, Simplifier(pool, types, s.ranges), {})), pool
        )
        for s in draft.body
    )
    return remove_dead(replace(draft, body=body))


def _finished(statement: Comprehension, pool: Pool, types: ExprTypes) -> Comprehension:
    return name_shared(statement, pool, types, Simplifier(pool, types, statement.ranges))


def _access_checks(
    body: Iterable[Comprehension], types: ExprTypes, pool: Pool
) -> tuple[tuple[str, str], ...]:
    """What must hold of the sizes for every element that is read to exist."""
    checks: dict[str, str] = {}
    for statement in body:
        simplifier = Simplifier(pool, types, statement.ranges)
        for node in unguarded(statement.value):
            if isinstance(node, Access):
                for condition in unproved(node, simplifier, types) or ():
                    checks[f"{condition.size()} >= 0"] = f"{condition.size()} is negative"
    return tuple(checks.items())


def name_of(group: FusionGroup) -> str:
    """``mul_add_softmax``: the operators of the group, the first few of them."""
    names = [node.op_type.lower() for node in group.nodes]
    more = [f"{len(names) - MOST_NAMES}_more"] if len(names) > MOST_NAMES else []
    name = "_".join([*names[:MOST_NAMES], *more])
    return f"onnx_{name}" if name in BUILTINS or name in KEYWORDS else name
