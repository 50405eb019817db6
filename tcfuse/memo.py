"""Regions seen before: from their operators straight to the kernel, without composing again.

The key covers everything that composing and compiling look at: operators, attributes, how
values are connected, their types and shapes, small constants, options, and tcfuse itself.  A
refusal is remembered with its reason, and with the node that was in the way.  What wisdom knows
of a region is part of the key too: new wisdom finds no record, and old wisdom its old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx_ir as ir

from tcfuse import profile
from tcfuse.advising import Posed
from tcfuse.errors import UnsupportedError
from tcfuse.graph.blocked import block_of, block_of_node
from tcfuse.graph.plan import FusionGroup
from tcfuse.kernels import Compiled, recall_kernels
from tcfuse.ort.record import interface_from_json, interface_to_json
from tcfuse.ort.subgraph import constant_of
from tcfuse.profile import timed
from tcfuse.store import Record, Store, key_of, tool_digest
from tcfuse.tc.compose import ComposeError, TooLargeError
from tcfuse.wisdom.advice import Advice
from tcfuse.wisdom.problem import Layer

KIND, LAYERS = "regions", "layers"
MOST_ELEMENTS = 4096  # of a constant that may have become part of the text


@timed("cache")
def remembered(
    store: Store,
    key: str,
    group: FusionGroup,
    compile_region: Callable[[], Compiled],
    ask: Callable[[Posed], str] | None = None,
) -> Compiled:
    """What ``compile_region`` gives, or gave when it was called for this key.

    Args:
        store: The cache.
        key: Of the region.
        group: The region.
        compile_region: Makes what is not known.
        ask: Names what wisdom knows of a region now; ``None`` where there is no wisdom.

    Raises:
        ComposeError: A node is in the way.
        TooLargeError: It is too much for one kernel.
        UnsupportedError: The region is refused otherwise.
    """
    known = _posed(store.get(LAYERS, key), group) if ask is not None else None
    asked = "" if ask is None or known is None else ask(known)
    record = store.get(KIND, _key(key, asked))
    if record is not None and (found := _recall(store, record, group)) is not None:
        profile.tally("compose", cached=1)
        return found
    profile.tally("compose", made=1)
    try:
        made = compile_region()
    except ComposeError as error:
        node = group.nodes.index(error.node)
        store.put(KIND, key, {"refused": str(error), "node": node})
        raise
    except TooLargeError as error:
        store.put(KIND, key, {"too_large": str(error)})
        raise
    except UnsupportedError as error:
        store.put(KIND, key, {"refused": str(error)})
        raise
    record = {
        "cpu": made.kernels.cpu and made.kernels.cpu.key,
        "cuda": made.kernels.cuda and made.kernels.cuda.key,
        "without_cuda": made.kernels.without_cuda,
        "advice": {target: a.to_record() for target, a in made.kernels.advice.items()},
        "inputs": [group.inputs.index(value) for value in made.inputs],
        "outputs": [group.outputs.index(value) for value in made.outputs],
    }
    store.put(KIND, _key(key, made.asked), record)
    if made.layer is not None:
        posed = {"layer": made.layer.to_record(), "inputs": record["inputs"]}
        if any(isinstance(extent, str) for extent in made.layer.extents):
            posed["interface"] = interface_to_json(made.kernels.interface)
        store.put(LAYERS, key, posed)
    return made


def _key(key: str, asked: str) -> str:
    """Where the kernels of a region are that were made when wisdom knew ``asked``."""
    return key_of(key, asked) if asked else key


def _posed(record: Record | None, group: FusionGroup) -> Posed | None:
    """What a region asks of wisdom, from what was kept when it was composed."""
    if record is None:
        return None
    interface = record.get("interface")
    return Posed(
        Layer.of_record(record["layer"]),
        None if interface is None else interface_from_json(interface),
        tuple(group.inputs[k] for k in record["inputs"]),
    )


def _recall(store: Store, record: Record, group: FusionGroup) -> Compiled | None:
    """What a record says about ``group``; ``None`` when a kernel is gone."""
    if "node" in record:
        raise ComposeError(record["refused"], group.nodes[record["node"]])
    if "too_large" in record:
        raise TooLargeError(record["too_large"])
    if "refused" in record:
        raise UnsupportedError(record["refused"])
    advice = {target: Advice.of_record(a) for target, a in record["advice"].items()}
    made = record["cpu"], record["cuda"], record["without_cuda"]
    kernels = recall_kernels(store, *made, advice)
    if kernels is None:
        return None
    inputs = tuple(group.inputs[k] for k in record["inputs"])
    return Compiled(kernels, inputs, tuple(group.outputs[k] for k in record["outputs"]))


@timed("cache")
def region_key(group: FusionGroup, model: ir.Model, *options: str) -> str:
    """A digest of everything that determines the kernel of ``group``."""
    opsets = sorted(model.opset_imports.items())
    return key_of(*_describe(group), opsets, *options, tool_digest())


def _describe(group: FusionGroup) -> Iterator[str | bytes]:
    """The region as text: values by number, in order of first use."""
    numbers: dict[ir.Value, int] = {}

    def number(value: ir.Value | None) -> int:
        return -1 if value is None else numbers.setdefault(value, len(numbers))

    for node in group.nodes:
        fresh = [v for v in node.inputs if v is not None and v not in numbers]
        yield f"{node.domain}:{node.op_type} {[number(v) for v in node.inputs]}"
        for value in fresh:
            yield f"{value.dtype}{value.shape} {block_of(value)}"
            tensor = constant_of(value)
            if tensor is not None and tensor.size <= MOST_ELEMENTS:
                yield tensor.tobytes()
        for attribute in sorted(node.attributes.values(), key=lambda a: a.name):
            yield attribute.name
            if isinstance(attribute.value, ir.TensorProtocol):
                yield f"{attribute.value.dtype}{attribute.value.shape}"
                yield attribute.value.tobytes()
            else:
                yield str(attribute.value)
        yield str(block_of_node(node))
        yield f"{[(number(v), str(v.dtype), str(v.shape)) for v in node.outputs]}"
    yield f"{[number(v) for v in group.inputs]} {[number(v) for v in group.outputs]}"
