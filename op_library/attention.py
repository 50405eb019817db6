"""Attention of ONNX, with its masks, windows, and keys and values of the past.

Source: https://onnx.ai/onnx/operators/onnx__Attention.html
"""

from __future__ import annotations

from dataclasses import dataclass

from op_library._attention import Attended, attended
from op_library._heads import Heads, behind, heads_of
from op_library._rows import Rows
from op_library._statistics import converted, first_output, output
from op_library._text import (
    at,
    attribute,
    definition,
    minus,
    names,
    needed,
    plus,
    require_equal,
    select,
    statement,
    subscript,
)
from tcfuse.errors import UnsupportedError
from tcfuse.opdef import Kind, OpCall, onnx_op, same_size
from tcfuse.types import DType, Size, TensorType

MASK, PAST_KEY, PAST_VALUE, VALID = 3, 4, 5, 6
PRECISIONS = (DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, DType.BFLOAT16)


@onnx_op("Attention", since=23, kind=Kind.CONTRACTION)
def attention(call: OpCall) -> str:
    """``softmax(Q K' * scale + mask) V`` for each head.

    Shapes:
        Q, K, V: ``(batch, heads, steps, width)`` or ``(batch, steps, heads * width)``; a head
            of K and V may serve several of Q.
        Mask: Broadcast to the scores, ``(batch, heads, steps of Q, steps of K and its past)``;
            steps that are missing, which there may be from opset 24 on, are masked.
        PastKey, PastValue: ``(batch, heads, steps, width)``, put in front of K and V.
        Valid: ``(batch)``: how many steps of K and V count.
        Y: As Q.
    """
    body: list[str] = []
    core = core_of(call, body)
    shown, closed = logits(call, core, body)
    body += core.softmax(shown[2], closed)
    y, seen = first_output(call), output(call, 3)
    body += core.weighted("Y", y)
    if seen is not None:
        mode = int(call.attributes.get("qk_matmul_output_mode", 0))
        if not 0 <= mode < 4:
            raise UnsupportedError(f"Attention with qk_matmul_output_mode {mode}")
        value = core.scores.at_point((*shown, "Weight")[mode])
        value = converted(value, core.precision, seen.dtype)
        body.append(core.scores.each_point("Seen", value))
    names_of_inputs = ("Q", "K", "V", "Mask", "PastKey", "PastValue", "Valid")
    params = {name: call.input(k) for k, name in enumerate(names_of_inputs)}
    returns = {"Y": y, "KAll": output(call, 1), "VAll": output(call, 2), "Seen": seen}
    return definition(call, params, returns, body)


def core_of(call: OpCall, body: list[str]) -> Attended:
    """The queries, keys and values; adds the statements that put the past in front."""
    q, k, v = needed(call, 0), needed(call, 1), needed(call, 2)
    if not q.rank == k.rank == v.rank:
        raise UnsupportedError("Attention of tensors of different rank")
    count = int(call.attributes.get("kv_num_heads", 0))
    keys = with_past(call, heads_of(call, "K", k, count), PAST_KEY, body)
    values = with_past(call, heads_of(call, "V", v, count), PAST_VALUE, body)
    queries = heads_of(call, "Q", q, int(call.attributes.get("q_num_heads", 0)))
    return attended(call, queries, keys, values, precision_of(call, q.dtype))


def logits(
    call: OpCall, core: Attended, body: list[str]
) -> tuple[tuple[str, str, str], str | None]:
    """What the softmax is of; adds its statements.

    Returns:
        The scores as they are, within the soft cap, and with masks too; and whether a query
        attends no key.
    """
    scores = core.scores
    body += core.products()
    capped = "Scores"
    if call.attributes.get("softcap", 0) > 0:
        limit, capped = attribute(call, "softcap", 0), "Capped"
        value = f"tanh({scores.at_point('Scores')} / {limit}) * {limit}"
        body.append(scores.each_point("Capped", value))
    bias = bias_of(call, core)
    if bias is None:
        return ("Scores", capped, capped), None
    body += bias.statements
    value = f"{scores.at_point(capped)} + {at('Bias', names(bias.rows.point))}"
    body.append(scores.each_point("Masked", value))
    return ("Scores", capped, "Masked"), bias.closed


def precision_of(call: OpCall, dtype: DType) -> DType:
    """The type of the scores: the wider one of the inputs' and of what is asked for.

    Raises:
        UnsupportedError: Something else than a float type is asked for.
    """
    asked = call.attributes.get("softmax_precision")
    precision = dtype if asked is None else DType.from_onnx(int(asked))
    if precision not in PRECISIONS:
        raise UnsupportedError(f"Attention with softmax_precision {asked}")
    is_double = DType.FLOAT64 in (dtype, precision)
    return DType.FLOAT64 if is_double else DType.FLOAT32


def with_past(call: OpCall, new: Heads, position: int, body: list[str]) -> Heads:
    """Keys or values behind those of the past; adds the statements that put them there.

    Raises:
        UnsupportedError: There is a past of one of keys and values only, or it does not fit.
    """
    past, name = call.input(position), f"{new.name}All"
    if (call.input(PAST_KEY) is None) != (call.input(PAST_VALUE) is None):
        raise UnsupportedError("Attention with past keys or past values only")
    if past is None:
        if output(call, position - PAST_KEY + 1) is not None:
            point = Heads(name, new.batch, new.heads, new.steps, new.width).loops("bhtc")
            body.append(statement(name, point, new.at("b", "h", "t", "c")))
        return new
    if call.input(VALID) is not None:
        raise UnsupportedError("Attention with a past and with nonpad_kv_seqlen")
    old = heads_of(call, "PastKey" if position == PAST_KEY else "PastValue", past, 0)
    for size, other in ((old.batch, new.batch), (old.heads, new.heads), (old.width, new.width)):
        require_equal(size, other)
    whole, put = behind(name, old, new)
    body.append(put)
    return whole


@dataclass(frozen=True, slots=True)
class Bias:
    """What is added to the scores: a mask, and minus infinity where a query may not look.

    Attributes:
        rows: The points that it differs at; a row has the keys of one query.
        statements: Compute ``Bias``, and ``Open``, its maximum for each query.
        closed: Whether a query may look nowhere; ``None`` when each may look somewhere.
    """

    rows: Rows
    statements: tuple[str, ...]
    closed: str | None


def bias_of(call: OpCall, core: Attended) -> Bias | None:
    """What is added to the scores; ``None`` when it is nothing."""
    mask, valid = call.input(MASK), call.input(VALID)
    allowed = positions(call, core)
    if mask is None and not allowed:
        return None
    shape = () if mask is None else mask.shape
    depends = {d - len(shape) + 4 for d, size in enumerate(shape) if size != 1} | {2, 3}
    if valid is not None:
        depends.add(0)
    point = tuple(loop for d, loop in enumerate(core.scores.point) if d in depends)
    rows = Rows(point, frozenset([len(point) - 1]))
    added = "0"
    if mask is not None:
        added, missing = mask_at(call, mask, core)
        allowed += missing
    value = select(" && ".join(allowed), added, "-inf()") if allowed else added
    statements = [rows.each_point("Bias", value)]
    closed = None
    if mask is not None or valid is not None or window(call) != (-1, -1):
        statements.append(rows.fold("Open", rows.at_point("Bias"), "max=!"))
        closed = f"{rows.at_row('Open')} == -inf()"
    return Bias(rows, tuple(statements), closed)


def mask_at(call: OpCall, mask: TensorType, core: Attended) -> tuple[str, list[str]]:
    """The mask at a point of the scores, and the conditions under which it is there.

    Raises:
        UnsupportedError: It does not broadcast to the scores.
    """
    point = core.scores.point
    if not 1 <= mask.rank <= 4:
        raise UnsupportedError(f"Attention with a mask of rank {mask.rank}")
    outer = zip(mask.shape[:-1], point[4 - mask.rank : 3], strict=True)
    subscripts = [subscript(size, loop) for size, loop in outer]
    steps, missing = mask.shape[-1], []
    if not same_size(steps, core.keys.steps):
        known = isinstance(steps, int) and isinstance(core.keys.steps, int)
        if steps == 1 or (call.opset < 24 and known):
            raise UnsupportedError(f"a mask of {steps} steps for {core.keys.steps} keys")
        missing = [f"t < {steps}"]
    value = at("Mask", [*subscripts, "t"])
    if mask.dtype is DType.BOOL:
        return select(value, "0", "-inf()"), missing
    return value if mask.dtype.is_float else f"{core.precision.tc}({value})", missing


def positions(call: OpCall, core: Attended) -> list[str]:
    """The conditions on the steps ``q`` and ``t`` under which a query looks at a key."""
    valid, past = call.input(VALID), call.input(PAST_KEY)
    conditions = []
    offset: Size = 0
    if valid is not None:
        require_equal(valid.shape[0], core.queries.batch)
        conditions.append("t < Valid(b)")
        offset = f"Valid(b) - {core.queries.steps}"
    elif past is not None:
        offset = past.shape[2]
    here = plus("q", offset)
    if call.attributes.get("is_causal", 0):
        conditions.append(f"t <= {here}")
    left, right = window(call)
    if left >= 0:
        conditions.append(f"t >= {minus(here, left)}")
    if right >= 0:
        conditions.append(f"t <= {plus(here, right)}")
    return conditions


def window(call: OpCall) -> tuple[int, int]:
    """How far a query looks to the left and to the right; -1 is as far as there are keys.

    Raises:
        UnsupportedError: A size is less than -1.
    """
    left, right = (
        int(call.attributes.get(f"{side}_window_size", -1)) for side in ("left", "right")
    )
    if min(left, right) < -1:
        raise UnsupportedError(f"Attention with a window from {left} to {right}")
    return left, right
