"""Shape rules of attention, and of operators that hand a state from call to call."""

from __future__ import annotations

from tcfuse.graph.shape_call import Call, Shapes, UnknownShapeError, shape_rule
from tcfuse.graph.symbols import Dim, Dims, add, exact_divide, multiply, subtract


@shape_rule("Attention")
def attention(call: Call) -> Shapes:
    """Y, the keys and values with the past in front of them, and the scores."""
    query, key, value = (call.shape(k) for k in range(3))
    if len(query) == 3:
        q_heads: Dim = int(call.attribute("q_num_heads"))
        kv_heads: Dim = int(call.attribute("kv_num_heads"))
        batch, q_steps, steps = query[0], query[1], key[1]
        width, value_width = (exact_divide(x[2], kv_heads) for x in (key, value))
        y: Dims = (batch, q_steps, multiply(q_heads, value_width))
    else:
        batch, q_heads, q_steps, _ = query
        kv_heads, steps, width, value_width = key[1], key[2], key[3], value[3]
        y = (batch, q_heads, q_steps, value_width)
    past = call.shape(4)[2] if call.input(4) is not None else 0
    total = add(past, steps)
    mask = call.shape_or_none(3)
    if mask and call.opset < 24:  # from then on a mask may be shorter
        call.scope.require(mask[-1], total)
    scores = (batch, q_heads, q_steps, total)
    return [y, (batch, kv_heads, total, width), (batch, kv_heads, total, value_width), scores]


@shape_rule("com.microsoft::MultiHeadAttention")
def multi_head_attention(call: Call) -> Shapes:
    """Y, the keys and values with the past in front of them, and the scores."""
    query, key, value = (call.shape(k) for k in range(3))
    heads: Dim = int(call.attribute("num_heads"))
    if len(query) != 3 or len(key) not in (3, 4):
        raise UnknownShapeError
    width = exact_divide(query[2], heads)
    is_apart = len(key) == 4
    value_width = value[3] if is_apart else exact_divide(value[2], heads)
    past = call.shape(6)[2] if call.input(6) is not None else 0
    total = add(past, key[2] if is_apart else key[1])
    y = (*query[:2], multiply(heads, value_width))
    present = [(query[0], heads, total, size) for size in (width, value_width)]
    return [y, *present, (query[0], heads, query[1], total)]


@shape_rule("ai.onnx.preview::FlexAttention")
def flex_attention(call: Call) -> Shapes:
    """The shape of the queries, as wide as the values."""
    return [(*call.shape(0)[:-1], call.shape(2)[-1])]


@shape_rule("CausalConvWithState", "com.microsoft::CausalConvWithState")
def causal_convolution(call: Call) -> Shapes:
    """The result as the input, and as many steps as the taps reach back."""
    x, taps = call.shape(0), call.shape(1)[2]
    if len(x) != 3 or call.attribute("state_window", 0) or call.attribute("channels_last", 0):
        raise UnknownShapeError
    before = multiply(subtract(taps, 1), int(call.attribute("dilation", 1)))
    return [x, (*x[:2], before)]


@shape_rule("LinearAttention", "com.microsoft::LinearAttention")
def linear_attention(call: Call) -> Shapes:
    """The heads of the queries, as wide as the values; a state for each head of the keys."""
    if call.attribute("state_window", 0):
        raise UnknownShapeError
    query, value = call.shape(0), call.shape(2)
    q_heads, kv_heads = (int(call.attribute(f"{x}_num_heads")) for x in ("q", "kv"))
    width, value_width = exact_divide(query[2], q_heads), exact_divide(value[2], kv_heads)
    y = (*query[:2], multiply(max(q_heads, kv_heads), value_width))
    return [y, (query[0], kv_heads, width, value_width)]
