"""The page that documents a library of layers, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcfuse.interface import Port
from tcfuse.layers.describe import preconditions, where_sizes_come_from
from tcfuse.layers.operator import Operator

HEAD = """# {name}

`{name}.so` holds {count} for ONNX Runtime 1.17 and newer, in the domain `{domain}`, version 1.
`{name}/` holds a model of each. Sizes with a name are known when the operator runs.

In Python (any other language has the same call):

```python
import onnxruntime

options = onnxruntime.SessionOptions()
options.register_custom_ops_library("{name}.so")
session = onnxruntime.InferenceSession("{name}/{first}.onnx", options)
```

A session takes one library of each domain. The operators stand beside any others of a model; a
node is made like this:

```python
import onnx_ir as ir

{snippet}
model.graph.opset_imports["{domain}"] = 1
```
"""


def page(operators: Sequence[Operator], name: str) -> str:
    """The page of a library.

    Args:
        operators: All of one domain, at least one.
        name: Of the library's file, without its suffix.
    """
    first = operators[0]
    count = f"{len(operators)} operators" if len(operators) > 1 else "one operator"
    head = HEAD.format(
        name=name, count=count, domain=first.domain, first=first.name, snippet=_snippet(first)
    )
    return "\n".join((head, *map(_operator, operators)))


def _operator(operator: Operator) -> str:
    """The section about one operator."""
    checked = operator.checked
    parts = [f"## {operator.name}", "", *_table(operator), ""]
    if sizes := where_sizes_come_from(checked):
        parts += ["| size | is |", "|---|---|"]
        parts += [f"| `{size}` | {place} |" for size, place in sizes.items()]
        parts.append("")
    if conditions := preconditions(checked):
        parts.append("Checked in every run, which fails unless they hold:")
        parts += ["", *(f"* `{condition}`" for condition in conditions), ""]
    parts += ["```", str(checked.definition).rstrip(), "```", ""]
    return "\n".join(parts)


def _table(operator: Operator) -> Iterable[str]:
    yield "| tensor | type | place |"
    yield "|---|---|---|"
    declared = set(operator.checked.inputs)
    for k, port in enumerate(operator.inputs):
        note = "" if port.name in declared else ": what the output starts from"
        yield _row(port, f"input {k}{note}")
    for k, port in enumerate(operator.outputs):
        yield _row(port, f"output {k}")


def _row(port: Port, what: str) -> str:
    return f"| `{port.name}` | `{port.type}` | {what} |"


def _snippet(operator: Operator) -> str:
    """The line that makes a node, from values with the names of the inputs."""
    inputs = ", ".join(port.name for port in operator.inputs)
    outputs = len(operator.outputs)
    more = f", num_outputs={outputs}" if outputs > 1 else ""
    return f'node = ir.node("{operator.name}", [{inputs}], domain="{operator.domain}"{more})'
