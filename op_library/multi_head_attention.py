"""MultiHeadAttention of ONNX Runtime: attention of inputs that lack only their biases.

Source: ONNX Runtime's docs/ContribOperators.md.
"""

from __future__ import annotations

from op_library._attention import Attended, attended
from op_library._heads import Heads, behind, heads_of
from op_library._statistics import converted, first_output, output
from op_library._text import (
    at,
    attribute,
    definition,
    minus,
    needed,
    plus,
    require_equal,
    select,
    statement,
    subscript,
    total,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op, same_size
from tcfuse.types import DType, Size

INPUTS = ("Q", "K", "V", "B", "Padding", "Added", "PastKey", "PastValue")
BIAS, PADDING, ADDED, PAST_KEY, PAST_VALUE = range(3, 8)


@onnx_op("MultiHeadAttention", since=1, kind=Kind.CONTRACTION, domain="com.microsoft")
def multi_head_attention(call: OpCall) -> str:
    """``softmax((Q + B) (K + B)' * scale + masks) (V + B)`` for each head.

    Shapes:
        Q: ``(batch, steps, heads * width)``.
        K, V: As Q, or ``(batch, heads, steps, width)``, which has its bias and its past.
        B: ``(heads * width)`` of Q, of K and of V, one after the other.
        Padding: ``(batch)``, how many keys count; or ``(batch, keys)`` or ``(batch, steps,
            keys)``, 0 where a key does not count.
        Added: Broadcast to the scores, ``(batch, heads, steps of Q, steps of K and its past)``.
        PastKey, PastValue: ``(batch, heads, steps, width)``, put in front of K and V.
    """
    if any(call.input(k) for k in range(len(INPUTS), 10)):
        raise UnsupportedError("MultiHeadAttention with a buffer that past and present share")
    body: list[str] = []
    core = core_of(call, body)
    scores = core.scores
    body += core.products()
    logits = "Scores"
    mask = mask_of(call, core)
    if mask is not None:
        logits = "Masked"
        body.append(scores.each_point("Masked", f"{scores.at_point('Scores')} + {mask}"))
    body += core.softmax(logits)
    y, seen = first_output(call), output(call, 3)
    body += core.weighted("Y", y)
    if seen is not None:
        value = converted(scores.at_point(logits), core.precision, seen.dtype)
        body.append(scores.each_point("Seen", value))
    params = {name: call.input(k) for k, name in enumerate(INPUTS)}
    returns = {"Y": y, "KAll": output(call, 1), "VAll": output(call, 2), "Seen": seen}
    return definition(call, params, returns, body)


def core_of(call: OpCall, body: list[str]) -> Attended:
    """The queries, keys and values; adds the statements with their biases and their past."""
    q, k, v = needed(call, 0), needed(call, 1), needed(call, 2)
    count = int(call.attributes.get("num_heads", 0))
    if q.rank != 3 or k.rank != v.rank or k.rank not in (3, 4):
        raise UnsupportedError("MultiHeadAttention of packed queries, keys and values")
    if k.rank == 4 and (call.input(BIAS) or call.input(PAST_KEY)):
        raise UnsupportedError("MultiHeadAttention of keys with another bias or past")
    inputs = [
        heads_of(call, name, type_, count) for name, type_ in zip("QKV", (q, k, v), strict=True)
    ]
    first: Size = 0
    for position, heads in enumerate(inputs):
        if call.input(BIAS) is not None:
            inputs[position] = biased(heads, first, body)
        first = total([first, (q, k, v)[position].shape[-1]])
    queries, keys, values = inputs
    keys = with_past(call, keys, PAST_KEY, body)
    values = with_past(call, values, PAST_VALUE, body)
    precision = DType.FLOAT64 if q.dtype is DType.FLOAT64 else DType.FLOAT32
    return attended(call, queries, keys, values, precision)


def biased(heads: Heads, first: Size, body: list[str]) -> Heads:
    """Heads with their bias, which starts at ``first``; adds the statement that adds it."""
    name = f"{heads.name}Biased"
    result = Heads(name, heads.batch, heads.heads, heads.steps, heads.width)
    value = f"{heads.at('b', 'h', 't', 'c')} + B({plus(heads.column('h', 'c'), first)})"
    body.append(statement(name, result.loops("bhtc"), value))
    return result


def with_past(call: OpCall, new: Heads, position: int, body: list[str]) -> Heads:
    """Keys or values behind those of the past; adds the statement that puts them there.

    Raises:
        UnsupportedError: There is a past of one of keys and values only, or it does not fit.
    """
    if (call.input(PAST_KEY) is None) != (call.input(PAST_VALUE) is None):
        raise UnsupportedError("MultiHeadAttention with past keys or past values only")
    past, name = call.input(position), f"{new.name[0]}All"
    if past is not None:
        old = heads_of(call, INPUTS[position], past, 0)
        for a, b in ((old.batch, new.batch), (old.heads, new.heads), (old.width, new.width)):
            require_equal(a, b)
        new, put = behind(name, old, new)
        body.append(put)
    elif output(call, position - PAST_KEY + 1) is not None:
        whole = Heads(name, new.batch, new.heads, new.steps, new.width)
        body.append(statement(name, whole.loops("bhtc"), new.at("b", "h", "t", "c")))
    return new


def mask_of(call: OpCall, core: Attended) -> str | None:
    """What is added to the scores at a point; ``None`` when it is nothing."""
    padding, added, past = call.input(PADDING), call.input(ADDED), call.input(PAST_KEY)
    point = core.scores.point
    terms = []
    if padding is not None:
        loops = {1: point[:1], 2: (point[0], point[3]), 3: (point[0], *point[2:])}.get(
            padding.rank
        )
        if loops is None:
            raise UnsupportedError(f"MultiHeadAttention with padding of rank {padding.rank}")
        for size, (_, extent) in zip(padding.shape, loops, strict=True):
            require_equal(size, extent)
        read = at("Padding", [index for index, _ in loops])
        counts = f"t < {read}" if padding.rank == 1 else f"{read} > 0"
        terms.append(f"({select(counts, '0', attribute(call, 'mask_filter_value', -10000))})")
    if added is not None:
        if added.rank != 4:
            raise UnsupportedError(f"MultiHeadAttention with a bias of rank {added.rank}")
        places = [subscript(size, loop) for size, loop in zip(added.shape, point, strict=True)]
        terms.append(at("Added", places))
    value = " + ".join(terms) if terms else None
    if not call.attributes.get("unidirectional", 0):
        return value
    seen = f"t <= {plus('q', 0 if past is None else past.shape[2])}"
    steps = core.queries.steps
    if not same_size(steps, needed(call, 1).shape[-2]):
        seen = f"q == {minus(str(steps), 1)} || {seen}"  # the last one sees whatever there is
    return f"({select(seen, value or '0', '-inf()')})"
