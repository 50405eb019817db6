"""Elements of tensors as C++ text: loads and stores, of one element or one for each lane."""

from __future__ import annotations

from tcfuse.codegen import storage
from tcfuse.codegen.scope import LaneLoop, Squares
from tcfuse.codegen.storage import RAW_TYPES
from tcfuse.codegen.tensors import Tensor
from tcfuse.codegen.values import Row, Value
from tcfuse.errors import UnsupportedError
from tcfuse.poly.polynomial import Polynomial
from tcfuse.types import DType


def offset_of(tensor: Tensor, subscripts: tuple[Polynomial, ...]) -> Polynomial:
    """The address of an element, counted in elements."""
    total = Polynomial()
    for subscript, stride in zip(subscripts, tensor.strides, strict=True):
        total = total + subscript * stride
    return total


def read(
    tensor: Tensor, offset: Polynomial, lane: LaneLoop | None, *, computed: bool = False
) -> Value:
    """The element at an offset that is known to lie inside the tensor.

    Args:
        tensor: What is read.
        offset: Where.
        lane: The lanes loop, if there is one.
        computed: The offset mentions what the innermost loop computes.
    """
    held = tensor.dtype
    if tensor.register:
        return Value(tensor.name, held, tensor.lanes and lane is not None)
    if lane is None or (not tensor.lanes and not offset.mentions(lane.iterator)):
        return Value(tensor.decoded(f"{tensor.name}[{offset}]"), held)
    stride = lane_stride(tensor, offset, lane)
    if stride is None:
        index = lane_index(offset, lane)
        return Value(tensor.decoded(_gathered(tensor, index, lane)), held, True)
    at = f"{tensor.name} + {offset}" if offset.terms else tensor.name
    raw, width = tensor.raw, lane.width
    if stride.number == 1 and (lane.partial is None or tensor.lanes):  # rows have room for all
        start = offset - Polynomial.factor(lane.iterator)
        row = None if tensor.lanes else Row(f"{tensor.name} + {start}", held)
        return Value(loaded(held, at, lane), held, True, row=row)
    if stride.number == 1:
        text = f"tcf::load_first<{raw}, {width}>({at}, {lane.partial}, {raw}(0))"
    elif lane.squares and not computed and _fills_squares(tensor, offset, lane.squares):
        text = _from_square(tensor, at, stride, lane.squares)
    elif lane.partial is None:
        text = f"tcf::load_strided<{raw}, {width}>({at}, {stride})"
    else:
        text = _gathered(tensor, lane_index(offset, lane), lane)
    return Value(tensor.decoded(text), held, True)


def loaded(dtype: DType, at: str, lane: LaneLoop) -> str:
    """Neighbouring elements from an address on, one for each lane."""
    return storage.decoded(dtype, f"tcf::load<{RAW_TYPES[dtype]}, {lane.width}>({at})")


def _fills_squares(tensor: Tensor, offset: Polynomial, squares: Squares) -> bool:
    """Whether a strided read is contiguous along their loop, and stays as it is."""
    return tensor.name not in squares.written and _is_along(tensor, offset, squares)


def _is_along(tensor: Tensor, offset: Polynomial, squares: Squares) -> bool:
    """Whether an access is contiguous along the loop of squares."""
    along = offset.stride(squares.iterator)
    return not tensor.lanes and along is not None and along.number == 1


def _from_square(tensor: Tensor, at: str, stride: Polynomial, squares: Squares) -> str:
    """One column of a square."""
    known = squares.loads.setdefault(
        (at, str(stride)), (f"square{len(squares.loads)}_{squares.index}", tensor.raw)
    )
    return f"{known[0]}[{squares.index}]"


def stored(target: Tensor, offset: Polynomial, text: str, lane: LaneLoop) -> str:
    """A store of all lanes."""
    stride = lane_stride(target, offset, lane)
    if stride is None:
        raise UnsupportedError(f"{target.name} is written at a place that is not affine")
    at = f"{target.name} + {offset}" if offset.terms else target.name
    unit = stride.number == 1
    if unit and target.streamed and lane.partial is None and lane.hoists:
        lane.streamed[target.name] = offset
        if lane.streams:
            return f"tcf::stream<{lane.width}>({at}, {text});"
    if unit and (lane.partial is None or target.lanes):
        return f"tcf::store<{lane.width}>({at}, {text});"
    if lane.partial is None:
        if lane.squares and _closes_squares(target, offset, lane, lane.squares):
            return _to_square(target, at, stride, text, lane.squares)
        return f"tcf::store_strided<{lane.width}>({at}, {stride}, {text});"
    if unit:
        return f"tcf::store_first<{lane.width}>({at}, {text}, {lane.partial});"
    return f"tcf::store_strided_first<{lane.width}>({at}, {stride}, {text}, {lane.partial});"


def _closes_squares(
    target: Tensor, offset: Polynomial, lane: LaneLoop, squares: Squares
) -> bool:
    """Whether a strided store may wait until a square is full."""
    always = lane.guarded == squares.guarded
    return always and target.name in squares.kept and _is_along(target, offset, squares)


def _to_square(target: Tensor, at: str, stride: Polynomial, text: str, squares: Squares) -> str:
    """One column of a square that is written later."""
    name, _ = squares.stores.setdefault(
        (at, str(stride)), (f"full{len(squares.stores)}_{squares.index}", target.raw)
    )
    return f"{name}[{squares.index}] = {text};"


def lane_stride(tensor: Tensor, offset: Polynomial, lane: LaneLoop) -> Polynomial | None:
    """How far apart the elements of neighbouring lanes are."""
    return Polynomial.constant(1) if tensor.lanes else offset.stride(lane.iterator)


def lane_index(offset: Polynomial, lane: LaneLoop) -> str:
    """The value of ``offset`` in each lane, as an int64 vector."""
    stride = offset.stride(lane.iterator)
    iota = f"tcf::iota<int64_t, {lane.width}>()"
    if stride is None:
        return _computed_index(offset, lane)
    base = f"tcf::splat<int64_t, {lane.width}>({offset})"
    if stride.number == 1:
        return f"({base} + {iota})"
    return f"({base} + {iota} * tcf::splat<int64_t, {lane.width}>({stride}))"


def _computed_index(offset: Polynomial, lane: LaneLoop) -> str:
    """An index that is not linear in the lane, computed lane by lane."""
    return (
        f"tcf::lanewise<tcf::vec<int64_t, {lane.width}>>([&](int64_t {lane.iterator}) "
        f"{{ return int64_t({offset}); }}, "
        f"tcf::splat<int64_t, {lane.width}>({lane.iterator}) + "
        f"tcf::iota<int64_t, {lane.width}>())"
    )


def _gathered(tensor: Tensor, index: str, lane: LaneLoop) -> str:
    """The raw elements at ``index`` in the lanes in use."""
    if lane.partial is None:
        return f"tcf::gather<{tensor.raw}, {lane.width}>({tensor.name}, {index})"
    where = f"tcf::first_lanes<{lane.width}>({lane.partial})"
    return f"tcf::gather_if<{tensor.raw}, {lane.width}>({tensor.name}, {index}, {where})"


def widest_bytes(dtypes: list[DType]) -> int:
    """Bytes of the widest element, which decides how many lanes fit a register."""
    return max((d.compute.bytes for d in dtypes), default=4)
