"""Normalisation of embeddings, as ONNX Runtime fuses it.

Source: ONNX Runtime's docs/ContribOperators.md.
"""

from __future__ import annotations

from op_library._rows import rows_of
from op_library._statistics import deviations, first_output, output, scaling
from op_library._text import (
    at,
    attribute,
    definition,
    needed,
    require_equal,
    statement,
    subscript,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op

MICROSOFT = "com.microsoft"


@onnx_op("EmbedLayerNormalization", since=1, kind=Kind.REDUCTION, domain=MICROSOFT)
def embed_layer_normalization(call: OpCall) -> str:
    """LayerNormalization of the sum of the embeddings of words, positions and segments.

    Shapes:
        Words, Segments, Mask: ``(batch, steps)``.
        Places: ``(batch, steps)``; the batch may be 1. Without it, steps count from 0.
        Counted: ``(batch)``, how many of the mask are 1.
    """
    ids, y = needed(call, 0), first_output(call)
    counted, sum_ = output(call, 1), output(call, 2)
    rows = rows_of(call, y, [-1])
    (b, _), (s, _), (d, _) = rows.point
    places = call.input(8)
    place = s
    if places is not None:
        row = subscript(places.shape[0], rows.point[0])
        place = at("Places", (row, s))
    terms = [f"OfWords(Words({b}, {s}), {d})", f"OfPlaces({place}, {d})"]
    if call.input(4) is not None:
        if call.input(1) is None:
            raise UnsupportedError("EmbedLayerNormalization of segments that are not told")
        terms.append(f"OfSegments(Segments({b}, {s}), {d})")
    value = rows.at_point("Embedded")
    result = f"({value} - {rows.at_row('Center')}) * {rows.at_row('Scaling')}"
    body = [
        rows.each_point("Embedded", " + ".join(terms)),
        *deviations(rows, value, y.dtype.compute),
        scaling(rows, attribute(call, "epsilon", 1e-12)),
        rows.each_point("Y", f"{result} * Scale({d}) + Shift({d})"),
    ]
    if counted is not None:
        batch, steps = rows.point[:1], rows.point[1:2]
        one = f"int32(Mask({b}, {s}) == 1)"
        if call.input(7) is None:
            body.append(statement("Counted", batch, "0"))
        else:
            body.append(statement("Counted", batch, one, assign="+=!", reduce=steps))
    if sum_ is not None:
        body.append(rows.each_point("Total", value))
    inputs = ("Words", "Segments", "OfWords", "OfPlaces", "OfSegments", "Scale", "Shift")
    params = {name: call.input(k) for k, name in enumerate((*inputs, "Mask", "Places"))}
    for position in (2, 3, 5, 6):
        needed(call, position)
    require_equal(ids.shape[1], y.shape[1])
    return definition(call, params, {"Y": y, "Counted": counted, "Total": sum_}, body)
