"""Every operator of ``op_library`` in every element type, rank and kind of size.

``python -m tests.conformance.variants`` compares compiled kernels with stock ONNX Runtime,
whose answer on the same inputs is what is expected; what it does not run is left out.
"""

from __future__ import annotations

import argparse
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from tests.conformance.compiled import report, run_cases

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
QUIET = ("Reduce", "Normal", "oftmax", "Cast", "Mod", "Pool", "Quantize")
"""Operators, by part of their names, that have no defined answer for NaN or infinities."""
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


@dataclass(frozen=True, slots=True)
class Subject:
    """An operator with the shape of its first input; ``k`` varies what is free."""

    op_type: str
    domain: str
    shape: tuple[int | str, ...]
    k: int

    @property
    def rank(self) -> int:
        """Dimensions of the first input."""
        return len(self.shape)

    @property
    def axis(self) -> int:
        """One of them."""
        return self.k % self.rank if self.rank else 0

    def node(
        self, *inputs: Any, outputs: int = 1, dtypes: Any = (), **attributes: Any
    ) -> list[Variant]:
        """One variant."""
        return [Variant(self.op_type, inputs, attributes, outputs, self.domain, dtypes)]

    def with_partner(self, **attributes: Any) -> list[Variant]:
        """Of two inputs that broadcast, the second sometimes first."""
        pair = (self.shape, partner(self.shape, self.k))
        swaps = self.k % 3 == 0 and self.op_type != "PRelu"
        return self.node(*(reversed(pair) if swaps else pair), **attributes)


def cast(s: Subject) -> list[Variant]:
    targets = [DTYPES[(s.k + j) % len(DTYPES)] for j in range(3)]
    return [v for t in targets for v in s.node(s.shape, to=t.onnx)]


def reduce(s: Subject) -> list[Variant]:
    half = whole(*range(s.rank // 2, s.rank))
    axes = [None, whole(s.axis), half, whole(-1), whole(0)][s.k % 5] if s.rank else None
    empty = int(s.k % 7 == 3)
    return s.node(s.shape, axes, keepdims=s.k % 2, noop_with_empty_axes=empty)


def slice_(s: Subject) -> list[Variant]:
    start, end, step = (1, 1000, 2) if s.k % 2 else (-1, -1000, -1)
    limits = (whole(start), whole(end), whole(s.axis), whole(step))
    return s.node(s.shape, *limits) if s.rank else []


def split(s: Subject) -> list[Variant]:
    for axis, size in enumerate(s.shape):
        if isinstance(size, int) and size > 1:
            return s.node(s.shape, whole(1, size - 1), outputs=2, axis=axis)
    return []


def pad(s: Subject) -> list[Variant]:
    pads = whole(*[(s.k + d) % 3 for d in range(2 * s.rank)])
    mode = ("constant", "edge", "reflect", "wrap")[s.k % 4]
    return s.node(s.shape, pads, mode=mode) if s.rank else []


def squeeze(s: Subject) -> list[Variant]:
    ones = [d for d, size in enumerate(s.shape) if size == 1]
    return s.node(s.shape, whole(*ones)) if ones else []


def blocks(s: Subject) -> list[Variant]:
    return s.node((2, 8, 2, 4) if s.k % 2 else ("N", 8, 4, 6), blocksize=2)


def normalization(s: Subject) -> list[Variant]:
    has_bias = s.op_type == "LayerNormalization" and s.k % 2
    tail = s.shape[s.axis :]
    return s.node(s.shape, tail, *([tail] * has_bias), axis=s.axis) if s.rank else []


def along_axis(s: Subject) -> list[Variant]:
    return s.node(s.shape, axis=s.axis) if s.rank else []


def image(s: Subject) -> list[Variant]:
    return s.node(s.shape) if s.rank == 4 else []


def with_last(s: Subject) -> list[Variant]:
    return s.node(s.shape, s.shape[-1:]) if s.rank else []


def skip(s: Subject) -> list[Variant]:
    return s.node(s.shape, s.shape, s.shape[-1:]) if s.rank == 3 else []


BUILDERS: dict[str, Callable[[Subject], list[Variant]]] = {
    **dict.fromkeys(BINARY, Subject.with_partner),
    **dict.fromkeys(REDUCE, reduce),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LpNormalization"), along_axis),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "MeanVarianceNormalization"), image),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), blocks),
    **dict.fromkeys(("BiasGelu", "FastGelu"), with_last),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), skip),
    **dict.fromkeys(
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
        normalization,
    ),
    "Mod": lambda s: s.with_partner(fmod=s.k % 2),
    "BitShift": lambda s: s.with_partner(direction=("LEFT", "RIGHT")[s.k % 2]),
    "Where": lambda s: s.node(
        partner(s.shape, s.k), s.shape, partner(s.shape, s.k + 2), dtypes=(DType.BOOL,)
    ),
    "Clip": lambda s: s.node(s.shape, () if s.k % 2 else None, () if s.k % 3 else None),
    "Cast": cast,
    "CastLike": lambda s: s.node(s.shape, (2,), dtypes=(None, DTYPES[s.k % len(DTYPES)])),
    "Concat": lambda s: s.node(s.shape, s.shape, axis=s.axis) if s.rank else [],
    "Slice": slice_,
    "Split": split,
    "Gather": lambda s: (
        s.node(s.shape, (2, 3), axis=s.axis, dtypes=(None, DType.INT64)) if s.rank else []
    ),
    "Expand": lambda s: s.node(s.shape, whole(2, *[1] * s.rank)),
    "Tile": lambda s: s.node(s.shape, whole(*[1 + (s.k + d) % 2 for d in range(s.rank)])),
    "Transpose": lambda s: (
        s.node(s.shape, perm=[int(d) for d in np.roll(range(s.rank), s.k)]) if s.rank else []
    ),
    "Pad": pad,
    "Reshape": lambda s: s.node(s.shape, whole(-1)),
    "Squeeze": squeeze,
    "Unsqueeze": lambda s: s.node(s.shape, whole(0, -1)),
    "InstanceNormalization": lambda s: (
        s.node(s.shape, s.shape[1:2], s.shape[1:2]) if s.rank >= 3 else []
    ),
    "GroupNormalization": lambda s: s.node(("N", 4, "M"), (4,), (4,), num_groups=2),
    "BatchNormalization": lambda s: s.node(s.shape, *[s.shape[1:2]] * 4) if s.rank >= 2 else [],
    "SwiGLU": lambda s: s.node(s.shape, s.shape),
    "QuantizeLinear": lambda s: s.node(
        s.shape, (), (), dtypes=(None, None, (DType.UINT8, DType.INT8)[s.k % 2])
    ),
    "DequantizeLinear": lambda s: s.node(s.shape, (), (), dtypes=(None, DType.FLOAT32, None)),
}
"""How the nodes of an operator look; others have one input."""


def variants(op_type: str, domain: str, shape: tuple[int | str, ...], k: int) -> list[Variant]:
    """The nodes of one operator for a first input of ``shape``; ``k`` varies what is free."""
    subject = Subject(op_type, domain, shape, k)
    if op_type == "Gelu" and not domain:
        return subject.node(shape, approximate=("none", "tanh")[k % 2])
    return BUILDERS.get(op_type, lambda s: s.node(s.shape))(subject)


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
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    make = floats if dtype.is_float else integers
    return np.asarray(make(shape, rng, op_type, dtype, value.name == "x0")).astype(dtype.numpy)


def floats(
    shape: tuple[int, ...], rng: np.random.Generator, op_type: str, dtype: DType, first: bool
) -> np.ndarray:
    """Floats, NaN and infinities among them where an operator treats them as such."""
    x = np.asarray(rng.standard_normal(shape) * (3 if first else 2))
    quiet = any(text in op_type for text in QUIET)
    if not quiet and x.size > 8:
        specials = [np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, -1.5, 2.5]
        x.reshape(-1)[rng.permutation(x.size)[: len(specials)]] = specials
    if op_type in ("BatchNormalization", "ReduceLogSum", "QuantizeLinear"):
        x = np.abs(x) + 0.1
    if op_type in ("Cast", "CastLike"):
        x = np.abs(x) * 8
    return 1 + x / 10 if op_type == "ReduceProd" else x


def integers(
    shape: tuple[int, ...], rng: np.random.Generator, op_type: str, dtype: DType, first: bool
) -> np.ndarray:
    """Integers in the range that an operator is defined for."""
    low, high = (-60, 60) if dtype.is_signed else (0, 100)
    if op_type in ("Div", "Mod"):
        return rng.integers(1, 20, shape) * (rng.choice([-1, 1], shape) if low else 1)
    ranges = {
        ("Gather", False): (-1, 1),
        ("Pow", True): (low // 20, high // 20),
        ("Pow", False): (0, 4),
        ("BitShift", False): (0, 8),
        ("ReduceLogSum", True): (1, high),
        ("ReduceProd", True): (-3 if low else 0, 4),
    }
    return rng.integers(*ranges.get((op_type, first), (low, high)), shape)


def left_out(op_type: str, dtype: DType) -> bool:
    """Where ONNX Runtime's answer is no measure.

    It computes some operators on doubles in float, has no sign of NaN for halves alone, and
    what the logarithm of a sum of exponentials of integers is depends on the axes.
    """
    if dtype is DType.FLOAT64:
        return op_type in ("FastGelu", "GroupNormalization")
    if dtype is DType.FLOAT16:
        return op_type == "Sign"
    return op_type == "ReduceLogSumExp" and not dtype.is_float


def as_case(variant: Variant, dtype: DType, name: str) -> Any | None:
    """The variant as a test case with ONNX Runtime's answers; ``None`` if that has none."""
    if left_out(variant.op_type, dtype):
        return None
    model = model_of(variant, dtype)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    try:
        session = open_session(ir.from_proto(model), optimized=False)
    except Exception:  # not implemented for this type, or not a valid node
        return None
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
    return SimpleNamespace(name=name, model=model, data_sets=sets) if sets else None


def named_sizes(model: onnx.ModelProto) -> bool:
    """Whether an input has a size that is not a number."""
    shapes = (value.type.tensor_type.shape for value in model.graph.input)
    return any(dim.dim_param for shape in shapes for dim in shape.dim)


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
    return report(outcome, refusals=arguments.refusals)


if __name__ == "__main__":
    sys.exit(main())
