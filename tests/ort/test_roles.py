"""Integers that verification draws are places that exist."""

from __future__ import annotations

import onnx.parser
import onnx_ir as ir
import pytest

from tcfuse.ort.roles import Role, integer_roles
from tcfuse.targets.base import Interface, Port
from tcfuse.types import DType, TensorType

CASES = [
    ("Gather<axis=1>(x, k)", Role(-1, 5)),
    ("GatherElements<axis=-1>(x, k)", Role(-1, "n0")),
    ("GatherElements(y0, k)", Role(0, 1)),  # of a table that is made in the kernel
    ("GatherND(x, k)", Role(0, 1)),
    ("ScatterElements<axis=0>(x, k, x)", Role(-1, 4)),
    ("NegativeLogLikelihoodLoss(x, k)", Role(0, 5)),
    ("ReverseSequence<time_axis=1>(x, k)", Role(0, 5)),
    ("TensorScatter(x, x, k)", Role(0, 1)),
    ("Div(x, k)", Role(1, 8, nonzero=True)),
]


@pytest.mark.parametrize(("body", "role"), CASES)
def test_integers_are_places_of_what_they_index(body, role):
    text = (
        f'<domain: "d", opset_import: ["" : 24]> f (x, k) => (y) {{ y0 = Exp(x) y = {body} }}'
    )
    function = ir.from_proto(onnx.parser.parse_function(text))
    x = Port("x", TensorType(DType.FLOAT32, (4, 5, "n0")))
    k = Port("k", TensorType(DType.INT64, (3, 1)))
    assert integer_roles(function, Interface((x, k), (), ("n0",))) == {1: role}
