"""Shape rules of ONNX Runtime's operators on blocked tensors (``graph.blocked``).

Filters are padded to whole blocks, so most operators have the shapes of their namesakes.
"""

from __future__ import annotations

from tcfuse.graph.blocked import NCHWC, block_of_node
from tcfuse.graph.shape_call import Call, Shapes, UnknownShapeError, shape_rule
from tcfuse.graph.shape_contraction import blocked_convolution, global_pool, pool
from tcfuse.graph.symbols import multiply

shape_rule(f"{NCHWC}::MaxPool", f"{NCHWC}::AveragePool")(pool)
shape_rule(f"{NCHWC}::GlobalAveragePool", f"{NCHWC}::GlobalMaxPool")(global_pool)
shape_rule(f"{NCHWC}::Conv")(blocked_convolution)


@shape_rule(f"{NCHWC}::ReorderInput")
def reorder_input(call: Call) -> Shapes:
    """The channels, which may be last, in whole blocks."""
    images, channels, *spatial = call.shape(0)
    if call.attribute("channels_last", 0):
        *spatial, channels = (channels, *spatial)
    block = block_of_node(call.node)
    if not block or not isinstance(channels, int):
        raise UnknownShapeError
    return [(images, -(-channels // block) * block, *spatial)]


@shape_rule(f"{NCHWC}::ReorderOutput")
def reorder_output(call: Call) -> Shapes:
    """The channels that there are, last if so wished."""
    images, _, *spatial = call.shape(0)
    channels = int(call.attribute("channels"))
    if call.attribute("channels_last", 0):
        return [(images, *spatial, channels)]
    return [(images, channels, *spatial)]


@shape_rule(f"{NCHWC}::Upsample")
def upsample(call: Call) -> Shapes:
    """Every size times its whole scale."""
    scales = call.attribute("scales") or (1,) * len(call.shape(0))
    pairs = zip(call.shape(0), scales, strict=True)
    return [tuple(multiply(size, int(scale)) for size, scale in pairs)]
