"""A model with one fused node whose kernel is written by hand, right or wrong on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from models.draft import Draft
from tcfuse.graph.boundary import group_of
from tcfuse.graph.load import load_model
from tcfuse.graph.rewrite import Replacement, rewrite
from tcfuse.ort.library import build_library
from tcfuse.ort.subgraph import one_of_each
from tcfuse.ort.verify import Subject
from tcfuse.targets.base import KernelSource, Phase
from tcfuse.tc.compose import compose
from tcfuse.tc.sema import check

RIGHT = "x * 2.0f > 0.0f || x != x ? x * 2.0f : 0.0f"


@dataclass(frozen=True)
class Handmade:
    """Everything about the model ``Y = max(2 X, 0)``."""

    original: ir.Model
    replacement: Replacement
    library: Path
    subject: Subject

    def build(self, names: frozenset[str]) -> ir.Model:
        """The model with the kernel if it is named."""
        chosen = [self.replacement] if self.replacement.name in names else []
        return rewrite(self.original, chosen)


def handmade(folder: Path, expression: str = RIGHT, loop: str = "") -> Handmade:
    """The model with a kernel that computes ``expression`` of ``x``.

    Args:
        folder: Where the library goes.
        expression: C for one element.
        loop: C that runs before each element.
    """
    g = Draft("handmade")
    x = g.input("x", ["N", 7])
    g.output(g.op("Relu", g.op("Mul", x, g.constant(2.0))), "y", ["N", 7])
    model = load_model(g.model())
    group = group_of(tuple(model.graph), model.opset_imports)
    composed = compose(group, model.opset_imports)
    name = "double_relu_0"
    text = f"""
TCF_KERNEL({name}_0)(char* const* t, const int64_t* n, char* shared, char* local,
                     int64_t begin, int64_t end, int32_t* fault) {{
  const float* in = (const float*)t[0];
  float* out = (float*)t[1];
  for (int64_t i = begin * 7; i < end * 7; i++) {{
    float x = in[i];
    {loop}
    out[i] = {expression};
  }}
}}"""
    (rows,) = composed.interface.sizes
    source = KernelSource(name, text, composed.interface, (Phase(f"{name}_0", rows, "14"),))
    library = folder / "handmade.so"
    build_library([source], library)
    replacement = Replacement(group, name, composed.inputs, composed.outputs)
    fused = rewrite(model, [replacement])
    checked = check(composed.definition)
    subject = Subject(fused, one_of_each(fused)[name], library, checked, composed.interface)
    return Handmade(model, replacement, library, subject)
