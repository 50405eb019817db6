"""What must hold of a model's graph before anybody works on it.

Every value a node uses is defined, defined once, and before its use in *some* order of the
nodes; ONNX asks for that very order in the file, which is repaired here rather than refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

from tcfuse.errors import InputError


def check_graph(graph: onnx.GraphProto, name: str) -> bool:
    """Check ``graph`` and the bodies in it.

    Args:
        graph: The main graph.
        name: What to call the model in an error.

    Returns:
        Whether all nodes are in topological order.

    Raises:
        InputError: A value is undefined or defined twice, or the graph has a cycle.
    """
    return _check(graph, frozenset(), name)


def check_attributes(model: onnx.ModelProto, name: str) -> None:
    """Check that every attribute says what it is, or its value would be lost.

    Raises:
        InputError: One does not.
    """
    pending = [model.graph.node, *(function.node for function in model.functions)]
    while pending:
        for node in pending.pop():
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.UNDEFINED:
                    raise InputError(
                        f"{name}: attribute {attribute.name!r} of a {_title(node)} has no "
                        "type; export the model again"
                    )
            pending.extend(body.node for body in _subgraphs(node))


def _subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def _title(node: onnx.NodeProto) -> str:
    return f"{node.op_type} node {node.name!r}" if node.name else f"{node.op_type} node"


def _check(graph: onnx.GraphProto, outer: frozenset[str], name: str) -> bool:
    given = _definitions(graph, name)
    producers = _producers(graph, given, name)
    visible = outer | given | producers.keys()
    for info in graph.output:
        if info.name not in visible:
            raise InputError(
                f"{name}: graph output {info.name!r} is not made by any node; "
                "export the model again"
            )
    needs = [_needs(node) for node in graph.node]
    for node, names in zip(graph.node, needs, strict=True):
        for used in names - visible:
            raise InputError(
                f"{name}: a {_title(node)} uses the value {used!r}, which nothing defines; "
                "export the model again"
            )
    ordered = all(producers.get(n, -1) < k for k, names in enumerate(needs) for n in names)
    if not ordered:
        _check_acyclic(graph, needs, producers, name)
    for node in graph.node:
        for body in _subgraphs(node):
            ordered &= _check(body, visible, name)
    return ordered


def _producers(graph: onnx.GraphProto, given: frozenset[str], name: str) -> dict[str, int]:
    """For each value a node makes, the position of the node."""
    producers: dict[str, int] = {}
    for k, node in enumerate(graph.node):
        for output in filter(None, node.output):
            if output in producers or output in given:
                raise InputError(
                    f"{name}: value {output!r} is defined twice, the second time by a "
                    f"{_title(node)}; export the model again"
                )
            producers[output] = k
    return producers


def _definitions(graph: onnx.GraphProto, name: str) -> frozenset[str]:
    """Names of inputs and initializers; an initializer may be an input as well."""
    inputs = [info.name for info in graph.input]
    initializers = [t.name for t in graph.initializer]
    for kind, names in (("graph input", inputs), ("initializer", initializers)):
        if len(set(names)) < len(names):
            twice = next(n for k, n in enumerate(names) if n in names[:k])
            raise InputError(f"{name}: {kind} {twice!r} is there twice; export the model again")
    return frozenset((*inputs, *initializers))


def _needs(node: onnx.NodeProto) -> set[str]:
    """Names a node needs: its inputs, and what its bodies take from outside."""
    names = {n for n in node.input if n}
    for body in _subgraphs(node):
        names |= _captured(body)
    return names


def _captured(graph: onnx.GraphProto) -> set[str]:
    own = {info.name for info in graph.input} | {t.name for t in graph.initializer}
    used = {info.name for info in graph.output}
    for node in graph.node:
        own.update(node.output)
        used |= _needs(node)
    return used - own


def _check_acyclic(
    graph: onnx.GraphProto, needs: list[set[str]], producers: Mapping[str, int], name: str
) -> None:
    """Raise if the nodes have no topological order."""
    waiting_for = [{producers[n] for n in names if n in producers} for names in needs]
    users: dict[int, list[int]] = {}
    for k, before in enumerate(waiting_for):
        for p in before:
            users.setdefault(p, []).append(k)
    missing = [len(before) for before in waiting_for]
    ready = [k for k, count in enumerate(missing) if count == 0]
    done = 0
    while ready:
        done += 1
        for user in users.get(ready.pop(), ()):
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    if done < len(missing):
        at = next(k for k, count in enumerate(missing) if count)
        raise InputError(
            f"{name}: the graph is cyclic: a {_title(graph.node[at])} depends on its own "
            "result; export the model again"
        )
