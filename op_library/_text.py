"""How definitions write TC text: literals, subscripts, statements and whole definitions.

A loop is an index and its size.  Every statement names the range of every index it uses, so no
range has to be inferred, and a ternary may guard an access that would leave its tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tcfuse.errors import UnsupportedError
from tcfuse.opdef import INDICES, OpCall, same_size
from tcfuse.types import DType, Size, TensorType

Loop: TypeAlias = tuple[str, Size]
Loops: TypeAlias = tuple[Loop, ...]


def loops(shape: Sequence[Size]) -> Loops:
    """One loop per dimension of ``shape``, with the usual index names.

    Raises:
        UnsupportedError: There are more dimensions than names.
    """
    if len(shape) > len(INDICES):
        raise UnsupportedError(f"rank {len(shape)} is beyond {len(INDICES)}")
    return tuple(zip(INDICES, shape, strict=False))


def names(indices: Iterable[Loop]) -> tuple[str, ...]:
    """The index names of loops."""
    return tuple(name for name, _ in indices)


def at(tensor: str, subscripts: Iterable[str]) -> str:
    """``tensor(i, j)``; the bare name when there are no subscripts."""
    listed = ", ".join(subscripts)
    return f"{tensor}({listed})" if listed else tensor


def number(value: float | bool | np.generic) -> str:
    """A literal for a scalar; single precision values keep all their digits."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, int):
        return str(plain)
    if math.isnan(plain):
        return "nan()"
    if math.isinf(plain):
        return "inf()" if plain > 0 else "-inf()"
    return repr(plain)


def attribute(call: OpCall, name: str, default: float) -> str:
    """A literal for a float attribute, which ONNX stores in single precision."""
    return number(float(np.float32(call.attributes.get(name, default))))


def total(sizes: Iterable[Size]) -> Size:
    """The sum of sizes, added up as far as they are numbers."""
    known, texts = 0, []
    for size in sizes:
        if isinstance(size, int):
            known += size
        else:
            texts.append(size)
    if not texts:
        return known
    return " + ".join([*texts, str(known)] if known else texts)


def product(sizes: Iterable[Size]) -> str:
    """The product of sizes as an expression, multiplied as far as they are numbers."""
    known, texts = 1, []
    for size in sizes:
        if isinstance(size, int):
            known *= size
        else:
            texts.append(size if size.isidentifier() else f"({size})")
    if not texts:
        return str(known)
    factors = texts if known == 1 else [str(known), *texts]
    return factors[0] if len(factors) == 1 else f"({' * '.join(factors)})"


def plus(value: str, offset: Size) -> str:
    """``value + offset``, as short as it goes; the offset may be negative."""
    if isinstance(offset, str):
        return f"{value} + {offset}"
    if value.lstrip("-").isdecimal():
        return str(int(value) + offset)
    if offset == 0:
        return value
    return f"{value} + {offset}" if offset > 0 else f"{value} - {-offset}"


def minus(value: str, offset: Size) -> str:
    """``value - offset``, as short as it goes."""
    if isinstance(offset, int):
        return plus(value, -offset)
    return f"{value} - {offset}" if offset.isidentifier() else f"{value} - ({offset})"


def stepped(index: str, step: int, start: Size) -> str:
    """``start + step * index``, as short as it goes."""
    if step == 0:
        return str(start)
    scaled = index if abs(step) == 1 else f"{abs(step)} * {index}"
    return plus(scaled, start) if step > 0 else f"{start} - {scaled}"


def select(condition: str, then: str, otherwise: str) -> str:
    """``condition ? then : otherwise``, with other ternaries in it in parentheses."""
    then, otherwise = (f"({t})" if " ? " in t else t for t in (then, otherwise))
    return f"{condition} ? {then} : {otherwise}"


def widened(dtype: DType, value: str) -> str:
    """``value`` in the type arithmetic runs in, so that a temporary of it does not round."""
    return f"{dtype.compute.tc}({value})" if dtype.is_storage else value


def broadcast(type_: TensorType, onto: Loops) -> tuple[str, ...]:
    """The subscripts that read a tensor at a point of ``onto``, broadcast as NumPy does.

    Raises:
        UnsupportedError: A size is neither 1 nor known to equal its loop's.
    """
    return broadcast_shape(type_.shape, onto)


def broadcast_shape(shape: Sequence[Size], onto: Loops) -> tuple[str, ...]:
    """``broadcast`` of some dimensions of a tensor.

    Raises:
        UnsupportedError: A size is neither 1 nor known to equal its loop's.
    """
    if len(shape) > len(onto):
        raise UnsupportedError(f"rank {len(shape)} does not broadcast to rank {len(onto)}")
    aligned = onto[len(onto) - len(shape) :]
    return tuple(subscript(size, loop) for size, loop in zip(shape, aligned, strict=True))


def subscript(size: Size, loop: Loop) -> str:
    """The loop's index in a dimension of its size, ``0`` in one of size 1.

    Raises:
        UnsupportedError: The size is neither 1 nor known to equal the loop's.
    """
    index, extent = loop
    if size == 1:
        return "0"
    require_equal(size, extent)
    return index


def require_equal(a: Size, b: Size) -> None:
    """Check that two sizes are known to be equal.

    Raises:
        UnsupportedError: They are not.
    """
    if not same_size(a, b):
        raise UnsupportedError(f"cannot show that {a} and {b} agree")


def statement(
    target: str,
    over: Loops,
    value: str,
    *,
    assign: str = "=",
    reduce: Loops = (),
    lets: Mapping[str, str] | None = None,
) -> str:
    """One statement, with the range of every index.

    Args:
        target: The tensor that is written.
        over: The loops of its subscripts.
        value: The right side.
        assign: The assignment; a reduction without loops of its own becomes ``=``.
        reduce: The loops of the reduction variables.
        lets: Names for subexpressions of ``value``, in order.
    """
    clauses = [f"{name} = {text}" for name, text in (lets or {}).items()]
    clauses += [f"{index} in 0:{size}" for index, size in (*over, *reduce)]
    where = f" where {', '.join(clauses)}" if clauses else ""
    sign = assign if reduce else "="
    return f"  {at(target, names(over))} {sign} {value}{where}"


def definition(
    call: OpCall,
    params: Mapping[str, TensorType | None],
    returns: Mapping[str, TensorType | None],
    body: Iterable[str],
) -> str:
    """The text of a definition named like the operator.

    Args:
        call: The node.
        params: Inputs by name; absent ones (``None``) are left out.
        returns: Outputs by name; unused ones (``None``) are left out.
        body: The statements.
    """
    given = ", ".join(f"{type_} {name}" for name, type_ in params.items() if type_)
    made = ", ".join(f"{type_} {name}" for name, type_ in returns.items() if type_)
    return "\n".join([f"def {call.op_type}({given}) -> ({made}) {{", *body, "}", ""])


def only_output(call: OpCall) -> TensorType:
    """The type of the first output.

    Raises:
        UnsupportedError: It is unused, or another output is used.
    """
    first = call.outputs[0] if call.outputs else None
    if first is None:
        raise UnsupportedError(f"{call.op_type} without its first output")
    if any(call.outputs[1:]):
        raise UnsupportedError(f"{call.op_type} with more than one output")
    return first


def needed(call: OpCall, k: int) -> TensorType:
    """The type of an input that must be there.

    Raises:
        UnsupportedError: It is absent.
    """
    type_ = call.input(k)
    if type_ is None:
        raise UnsupportedError(f"{call.op_type} without input {k}")
    return type_


def scalar(call: OpCall, k: int) -> int | None:
    """The one integer of a constant input; ``None`` when it is absent.

    Raises:
        UnsupportedError: It is computed at run time, or is not one number.
    """
    value = call.constant(k)
    if value is None:
        return None
    if value.size != 1:
        raise UnsupportedError(f"input {k} of {call.op_type} has {value.size} elements")
    return int(value.reshape(()))


def require_defaults(call: OpCall, defaults: Mapping[str, object]) -> None:
    """Check that attributes have the only values that a definition covers.

    Raises:
        UnsupportedError: One has another.
    """
    for name, default in defaults.items():
        value = call.attributes.get(name, default)
        if value != default:
            raise UnsupportedError(f"{call.op_type} with {name} {value}")
