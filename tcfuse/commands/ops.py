"""``tcfuse ops``: what can be fused, and the stub of what cannot yet."""

from __future__ import annotations

from tcfuse import opdef
from tcfuse.commands.progress import print_lines
from tcfuse.errors import OptionError

STUB = '''\
@onnx_op("{name}", since=1, kind=Kind.ELEMENTWISE)
def {function}(call: OpCall) -> str:
    """``Y = ...``.

    Shapes:
        X, Y: any rank, equal.
    """
    (x,) = call.inputs
    assert x is not None
    point = ", ".join(INDICES[: len(x.shape)])
    return f"""
def {name}({{x}} X) -> (Y) {{
  Y({{point}}) = X({{point}})
}}
"""
'''


def run(new: str | None) -> int:
    """Print the list, or a stub; the exit status."""
    if new is not None:
        if not new.isidentifier():
            raise OptionError(f"--new {new!r} is not the name of an operator")
        print_lines(STUB.format(name=new, function=_snake(new)).splitlines())
        return 0
    for d in opdef.registered():
        name = f"{d.domain}::{d.op_type}" if d.domain else d.op_type
        print_lines([f"{name:<28} {d.since:>3}  {d.kind.value}"])
    return 0


def _snake(name: str) -> str:
    """``LeakyRelu`` as ``leaky_relu``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
