"""Every operator of ``op_library`` in every element type, rank and kind of size.

``python -m tests.conformance.variants`` compares compiled kernels with stock ONNX Runtime, whose
answer on the same inputs is what is expected; what it does not run itself is left out.
"""

from __future__ import annotations

import argparse
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper

from tcfuse import opdef
from tcfuse.ort.inference import open_session
from tcfuse.types import DType
from tests.conformance.compiled import run_cases

MICROSOFT = "com.microsoft"
DTYPES = tuple(
    DType.from_tc(name)
    for name in ("float", "double", "float16", "int32", "int64", "int8", "uint8", "bool")
)
SIZES = {"N": (5, 1, 0), "M": (19, 1, 3), "K": (4, 2, 1)}
"""What the named sizes are, run by run."""
SHAPES: tuple[tuple[int | str, ...], ...] = (
    (),
    (1,),
    (37,),
    (3, 1),
    ("N", "M"),
    (2, 3, 20),
    ("N", 3, "M"),
    (2, 1, 5, 17),
    ("N", 4, "K", "M"),
)
BINARY = (
    *("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
    *("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu", "Pow", "Mod"),
    *("Max", "Min", "Mean", "Sum", "BitShift"),
)
REDUCE = tuple(d.op_type for d in opdef.registered() if d.op_type.startswith("Reduce"))


@dataclass(frozen=True, slots=True)
class Variant:
    """One node: its attributes, and for each input the shape or the constant it gets."""

    op_type: str
    inputs: tuple[tuple[int | str, ...] | np.ndarray | None, ...]
    attributes: Mapping[str, Any]
    outputs: int = 1
    domain: str = ""
    dtypes: tuple[DType | None, ...] = ()
    opset: int = 22


def partner(shape: Sequence[int | str], choice: int) -> tuple[int | str, ...]:
    """A shape that broadcasts with ``shape``."""
    options = [
        tuple(shape),
        (),
        tuple(shape[-1:]),
        (1,) * len(shape),
        tuple(1 if k % 2 else s for k, s in enumerate(shape)),
        tuple(s if k % 2 else 1 for k, s in enumerate(shape)),
        (1, *shape[1:]),
    ]
    return options[choice % len(options)]


def whole(*values: int) -> np.ndarray:
    """An int64 vector."""
    return np.array(values, np.int64)


def variants(op_type: str, domain: str, shape: tuple[int | str, ...], k: int) -> list[Variant]:
    """The nodes of one operator for a first input of ``shape``; ``k`` varies what is free."""
    rank = len(shape)
    axis = k % rank if rank else 0

    def one(
        *inputs: Any, outputs: int = 1, dtypes: Any = (), **attributes: Any
    ) -> list[Variant]:
        return [Variant(op_type, inputs, attributes, outputs, domain, dtypes)]

    if op_type == "Mod" and k % 2:
        return one(shape, partner(shape, k), fmod=1)
    if op_type == "BitShift":
        return one(shape, partner(shape, k), direction=("LEFT", "RIGHT")[k % 2])
    if op_type in BINARY:
        reverse = k % 3 == 0 and op_type != "PRelu"
        pair = (shape, partner(shape, k))
        return one(*(reversed(pair) if reverse else pair))
    if op_type == "Where":
        bool_ = DType.BOOL
        return one(partner(shape, k), shape, partner(shape, k + 2), dtypes=(bool_,))
    if op_type == "Clip":
        return one(shape, () if k % 2 else None, () if k % 3 else None)
    if op_type == "Cast":
        targets = [DTYPES[(k + j) % len(DTYPES)] for j in range(3)]
        return [v for t in targets for v in one(shape, to=t.onnx)]
    if op_type == "CastLike":
        return one(shape, (2,), dtypes=(None, DTYPES[k % len(DTYPES)]))
    if op_type in REDUCE:
        axes = [None, whole(axis), whole(*range(rank // 2, rank)), whole(-1), whole(0)][k % 5]
        if rank == 0 and axes is not None:
            axes = None
        return one(shape, axes, keepdims=k % 2, noop_with_empty_axes=int(k % 7 == 3))
    if op_type in ("Softmax", "LogSoftmax", "LpNormalization"):
        return one(shape, axis=axis) if rank else []
    if op_type == "Concat":
        return one(shape, shape, axis=axis) if rank else []
    if op_type == "Slice":
        starts, steps = (whole(1), whole(2)) if k % 2 else (whole(-1), whole(-1))
        ends = whole(1000) if k % 2 else whole(-1000)
        return one(shape, starts, ends, whole(axis), steps) if rank else []
    if op_type == "Split":
        fixed = [d for d, s in enumerate(shape) if isinstance(s, int) and s > 1]
        if not fixed:
            return []
        size = shape[fixed[0]]
        assert isinstance(size, int)
        return one(shape, whole(1, size - 1), outputs=2, axis=fixed[0])
    if op_type == "Gather":
        return one(shape, (2, 3), axis=axis, dtypes=(None, DType.INT64)) if rank else []
    if op_type == "Expand":
        return one(shape, whole(2, *[1] * rank))
    if op_type == "Tile":
        return one(shape, whole(*[1 + (k + d) % 2 for d in range(rank)]))
    if op_type == "Transpose":
        return one(shape, perm=[int(d) for d in np.roll(range(rank), k)]) if rank else []
    if op_type == "Pad":
        pads = whole(*[(k + d) % 3 for d in range(2 * rank)])
        mode = ("constant", "edge", "reflect", "wrap")[k % 4]
        return one(shape, pads, mode=mode) if rank else []
    if op_type == "Reshape":
        return one(shape, whole(-1))
    if op_type == "Squeeze":
        ones = [d for d, s in enumerate(shape) if s == 1]
        return one(shape, whole(*ones)) if ones else []
    if op_type == "Unsqueeze":
        return one(shape, whole(0, -1))
    if op_type == "Dropout":
        return one(shape)
    if op_type in ("DepthToSpace", "SpaceToDepth"):
        tall = (2, 8, 2, 4) if k % 2 else ("N", 8, 4, 6)
        return one(tall, blocksize=2)
    if op_type in ("GlobalAveragePool", "GlobalMaxPool", "MeanVarianceNormalization"):
        return one(shape) if rank == 4 else []
    if op_type == "InstanceNormalization":
        return one(shape, shape[1:2], shape[1:2]) if rank >= 3 else []
    if op_type == "GroupNormalization":
        return one(("N", 4, "M"), (4,), (4,), num_groups=2)
    if op_type == "BatchNormalization":
        return one(shape, *[shape[1:2]] * 4) if rank >= 2 else []
    if op_type in ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"):
        bias = [shape[axis:]] if op_type == "LayerNormalization" and k % 2 else []
        return one(shape, shape[axis:], *bias, axis=axis) if rank else []
    if op_type.startswith("Skip"):
        return one(shape, shape, shape[-1:]) if rank == 3 else []
    if op_type in ("BiasGelu", "FastGelu"):
        return one(shape, shape[-1:]) if rank else []
    if op_type == "SwiGLU":
        return one(shape, shape)
    if op_type == "QuantizeLinear":
        return one(shape, (), (), dtypes=(None, None, (DType.UINT8, DType.INT8)[k % 2]))
    if op_type == "DequantizeLinear":
        return one(shape, (), (), dtypes=(None, DType.FLOAT32, None))
    if op_type == "Gelu" and not domain:
        return one(shape, approximate=("none", "tanh")[k % 2])
    return one(shape)


def model_of(variant: Variant, dtype: DType) -> onnx.ModelProto:
    """A model of one node; its outputs' types are what ONNX Runtime finds."""
    names, given, constants = [], [], []
    for k, item in enumerate(variant.inputs):
        if item is None:
            names.append("")
            continue
        names.append(f"x{k}")
        if isinstance(item, np.ndarray):
            constants.append(numpy_helper.from_array(item, f"x{k}"))
        else:
            own = variant.dtypes[k] if k < len(variant.dtypes) else None
            given.append(helper.make_tensor_value_info(f"x{k}", (own or dtype).onnx, item))
    while names and not names[-1]:
        names.pop()
    outputs = [f"y{k}" for k in range(variant.outputs)]
    node = helper.make_node(
        variant.op_type, names, outputs, domain=variant.domain, **variant.attributes
    )
    infos = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "variant", given, infos, constants)
    opsets = [helper.make_opsetid("", variant.opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def fill(
    value: onnx.ValueInfoProto, sizes: Mapping[str, int], rng: np.random.Generator, op_type: str
) -> np.ndarray:
    """Elements for an input, with those that an operator has no answer for left out."""
    dims = value.type.tensor_type.shape.dim
    shape = tuple(sizes[d.dim_param] if d.dim_param else d.dim_value for d in dims)
    dtype = DType.from_onnx(value.type.tensor_type.elem_type)
    assert dtype is not None
    is_first = value.name == "x0"
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_float:
        x = rng.standard_normal(shape) * (3 if is_first else 2)
        quiet = (
            op_type in REDUCE or "Normal" in op_type or op_type in ("Cast", "CastLike", "Mod")
        )
        if not quiet and x.size > 8 and "oftmax" not in op_type:
            specials = [np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, -1.5, 2.5]
            x.reshape(-1)[rng.permutation(x.size)[: len(specials)]] = specials
        if op_type.startswith("Quantize") and not is_first or op_type == "BatchNormalization":
            x = np.abs(x) + 0.1
        if op_type in ("Cast", "CastLike"):
            x = np.abs(x) * 8
        if op_type in ("ReduceLogSum", "ReduceProd"):
            x = np.abs(x) + 0.1 if op_type == "ReduceLogSum" else 1 + x / 10
        return np.asarray(x).astype(dtype.numpy)
    low, high = (0, 100) if not dtype.is_signed else (-60, 60)
    if op_type == "Gather" and not is_first:
        return rng.integers(-1, 1, shape).astype(dtype.numpy)
    if op_type in ("Div", "Mod"):
        x = rng.integers(1, 20, shape)
        if dtype.is_signed:
            x = x * rng.choice([-1, 1], shape)
        return np.asarray(x).astype(dtype.numpy)
    if op_type == "Pow":
        low, high = (0, 4) if not is_first else (low // 20, high // 20)
    if op_type == "BitShift" and not is_first:
        low, high = 0, 8
    if op_type == "ReduceLogSum":
        low = 1
    if op_type in ("ReduceProd", "ReduceLogSumExp"):
        low, high = 0 if not dtype.is_signed else -3, 4
    return rng.integers(low, high, shape).astype(dtype.numpy)


def as_case(variant: Variant, dtype: DType, name: str) -> Any | None:
    """The variant as a test case with ONNX Runtime's answers; ``None`` if that has none."""
    if dtype is DType.FLOAT64 and variant.op_type in ("FastGelu", "GroupNormalization"):
        return None  # ONNX Runtime computes these in float
    if not dtype.is_float and variant.op_type == "ReduceLogSumExp":
        return None  # what it makes of integers depends on the axes
    if dtype is DType.FLOAT16 and variant.op_type == "Sign":
        return None  # it has no sign of NaN in this type alone
    model = model_of(variant, dtype)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    try:
        session = open_session(ir.from_proto(model), optimized=False)
    except Exception:  # not implemented for this type, or not a valid node
        return None
    kinds = {f"tensor({d.onnx_name})": d for d in DType} if hasattr(DType, "onnx_name") else {}
    sets = []
    for k in range(3):
        sizes = {size: values[k] for size, values in SIZES.items()}
        feeds = [fill(value, sizes, rng, variant.op_type) for value in model.graph.input]
        named = {v.name: a for v, a in zip(model.graph.input, feeds, strict=True)}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sets.append((feeds, session.run(None, named)))
        except Exception:  # ONNX Runtime refuses these sizes
            continue
        if not any(
            d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim
        ):
            break
    del kinds
    return SimpleNamespace(name=name, model=model, data_sets=sets) if sets else None


def chosen(every: int, only: str = "") -> Iterator[Any]:
    """Cases over all operators; every ``every``-th of them."""
    count = 0
    seen = sorted({(d.op_type, d.domain) for d in opdef.registered()})
    for op_type, domain in seen:
        if only and op_type != only:
            continue
        for t, dtype in enumerate(DTYPES):
            for s, shape in enumerate(SHAPES):
                for v, variant in enumerate(variants(op_type, domain, shape, 3 * s + t)):
                    count += 1
                    if count % every:
                        continue
                    name = f"{domain + '.' if domain else ''}{op_type}-{dtype}-{s}-{v}"
                    if (case := as_case(variant, dtype, name)) is not None:
                        yield case


def main() -> int:
    """Run variants and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="one operator")
    parser.add_argument("--refusals", action="store_true", help="list what was refused")
    arguments = parser.parse_args()
    outcome = run_cases(chosen(arguments.every, arguments.only), progress=True)
    if arguments.refusals:
        for name, reason in outcome.refused.items():
            print(f"  {name}: {reason}")  # noqa: T201
    print(outcome.summary())  # noqa: T201
    return int(bool(outcome.failed))


if __name__ == "__main__":
    sys.exit(main())
