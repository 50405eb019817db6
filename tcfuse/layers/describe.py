"""What a definition takes and gives, in words: docstrings and pages."""

from __future__ import annotations

from tcfuse.tc.checked import CheckedDef
from tcfuse.tc.unparse import unparse_expr
from tcfuse.types import TensorType, size_names


def signature(checked: CheckedDef) -> str:
    """``softmax(float(N, D) X) -> (float(N, D) Y)``, every type resolved."""
    inputs, outputs = (
        ", ".join(f"{checked.tensors[name]} {name}" for name in names)
        for names in (checked.inputs, checked.outputs)
    )
    return f"{checked.definition.name}({inputs}) -> ({outputs})"


def where_sizes_come_from(checked: CheckedDef) -> dict[str, str]:
    """For each size name, the dimension it is; ``sizes=`` for one that no input shows."""
    found: dict[str, str] = {}
    for names in (checked.inputs, checked.inout):
        for name in names:
            for axis, size in enumerate(checked.tensors[name].shape):
                if isinstance(size, str) and size in checked.sizes:
                    found.setdefault(size, f"dimension {axis} of {name}")
    for name in names_in_sums(checked):
        found.setdefault(name, "from the sizes of the inputs")
    return {name: found.get(name, "to be fixed with sizes=") for name in checked.sizes}


def names_in_sums(checked: CheckedDef) -> tuple[str, ...]:
    """Size names in the dimensions of the inputs, those in sums included."""
    names = (*checked.inputs, *checked.inout)
    shapes = (checked.tensors[name].shape for name in names)
    return size_names(size for shape in shapes for size in shape)


def preconditions(checked: CheckedDef) -> tuple[str, ...]:
    """What must hold of the sizes, checked at every call."""
    return tuple(unparse_expr(condition) for condition in checked.preconditions)


def describe(checked: CheckedDef) -> str:
    """A docstring: inputs, outputs, sizes, what must hold, and the formula."""
    parts = [signature(checked)]
    parts.append(_section("Inputs", {n: _kind(checked.tensors[n]) for n in checked.inputs}))
    outputs = {name: _kind(checked.tensors[name]) for name in checked.outputs}
    for name in checked.inout:
        outputs[name] += "; starts from what out= holds"
    parts.append(_section("Outputs", outputs))
    parts.append(_section("Sizes", where_sizes_come_from(checked)))
    if conditions := preconditions(checked):
        parts.append("Must hold:\n" + "\n".join(f"    {text}" for text in conditions))
    formula = "\n".join(f"    {line}" for line in str(checked.definition).splitlines())
    parts.append(f"Formula:\n{formula}")
    return "\n\n".join(filter(None, parts))


def _section(title: str, entries: dict[str, str]) -> str:
    lines = "".join(f"\n    {name}: {text}" for name, text in entries.items())
    return f"{title}:{lines}" if lines else ""


def _kind(type_: TensorType) -> str:
    return str(type_)
