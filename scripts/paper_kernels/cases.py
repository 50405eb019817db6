"""The kernels at the papers' sizes, and at sizes that take a moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

from scripts.paper_kernels import numpy_forms as np_
from scripts.paper_kernels import onnx_forms as onnx
from scripts.paper_kernels.case import Case, NumpyForm, OnnxForm, Shapes, Step

Rows = Sequence[Sequence[int]]


def sized(names: str, values: Sequence[int]) -> dict[str, int]:
    """Sizes by name."""
    return dict(zip(names.split(), values, strict=True))


def cases(*, quick: bool) -> Iterator[Case]:
    """Every row of the table."""
    yield from products(quick=quick)
    yield from kroneckers(quick=quick)
    yield from convolutions(quick=quick)
    yield from norms(quick=quick)
    yield from moments(quick=quick)
    yield from lookups(quick=quick)
    yield from softmaxes(quick=quick)


def simple(
    kernel: str,
    names: str,
    rows: Rows,
    numpy: tuple[NumpyForm, ...],
    onnx_forms: tuple[OnnxForm, ...],
    *,
    definition: str | None = None,
    weights: tuple[str, ...] = (),
    shapes: Shapes | None = None,
    note: str = "",
) -> Iterator[Case]:
    """Cases of one definition, one for each row of sizes."""
    for row in rows:
        step = Step(kernel, definition or kernel, sized(names, row))
        yield Case(
            step.definition,
            (step,),
            numpy,
            onnx_forms,
            weights=weights,
            shapes=shapes,
            note=note,
        )


def products(*, quick: bool) -> Iterator[Case]:
    """Matrix products and fully connected layers."""
    rows: Rows = [(128, 256, 32), (128, 1024, 1024), (128, 16384, 4096)]
    yield from simple(
        "tmm",
        "M N K",
        [(64, 128, 32)] if quick else rows,
        (np_.product("A", "B", transposed=True),),
        (
            onnx.matmul("A", "B", transposed=True),
            onnx.gemm("A", "B"),
            onnx.einsum("mk,nk->mn", "A", "B"),
        ),
        weights=("B",),
    )
    yield from simple(
        "tbmm",
        "B N M K",
        [(20 if quick else 500, 26, 72, 26)],
        (np_.product("X", "Y"), np_.einsum("bnm,bmk->bnk", "X", "Y")),
        (onnx.matmul("X", "Y"), onnx.einsum("bnm,bmk->bnk", "X", "Y")),
    )
    yield from simple(
        "c3",
        "B WX WY",
        [(16, 100, 128) if quick else (128, 1000, 1024)],
        (np_.product("I", "Weight", transposed=True),),
        (onnx.matmul("I", "Weight", transposed=True), onnx.gemm("I", "Weight")),
        weights=("Weight",),
    )
    yield from simple(
        "mlp1",
        "B M N",
        [(16, 200, 128) if quick else (128, 2000, 128)],
        (np_.mlp1,),
        (onnx.mlp1, onnx.gemm("I", "Weight", "Bias", relu=True, trans=0)),
        weights=("Weight", "Bias"),
    )
    yield from simple(
        "mlp3",
        "B N O P Q",
        [(128, 128, 64, 32, 2)],
        (np_.mlp3,),
        (onnx.mlp3,),
        weights=("W2", "B2", "W3", "B3", "W4", "B4"),
    )
    yield from simple(
        "tensordot",
        "N C1 C2 C3 H W",
        [(1, 16, 8, 2, 14, 14) if quick else (32, 512, 8, 2, 28, 28)],
        (np_.tensordot, np_.einsum("nachw,ncdhw->nadhw", "I0", "I1")),
        (
            onnx.einsum("nachw,ncdhw->nadhw", "I0", "I1"),
            onnx.tensordot_slices,
            onnx.tensordot_matmul,
        ),
    )
    yield from simple(
        "triple_hadamard",
        "B D",
        [(100, 1000)],
        (np_.triple_hadamard,),
        (onnx.triple_hadamard,),
    )


def kroneckers(*, quick: bool) -> Iterator[Case]:
    """Kronecker x3 in one kernel and in three."""
    names = "M N0 N1 N2 D0 D1 D2"
    rows: Rows = [
        (256, 32, 32, 32, 16, 16, 16),
        (256, 64, 64, 64, 16, 16, 16),
        (64, 64, 128, 128, 16, 16, 16),
    ]
    for row in [(4, 8, 8, 8, 4, 4, 4)] if quick else rows:
        sizes = sized(names, row)
        parts = (
            ("kronecker3_step1", "M N0 N1 N2 D2"),
            ("kronecker3_step2", "M N0 N1 D2 D1"),
            ("kronecker3_step3", "M N0 D1 D2 D0"),
        )
        steps = [Step("kronecker3", d, {n: sizes[n] for n in s.split()}) for d, s in parts]
        for name, chosen in (
            ("kronecker3", [Step("kronecker3", "kronecker3", sizes)]),
            ("kronecker3_steps", steps),
        ):
            yield Case(
                name,
                tuple(chosen),
                (np_.kronecker3, np_.einsum("mabc,xa,yb,zc->mxyz", "X", "W0", "W1", "W2")),
                (onnx.kronecker3, onnx.einsum("mabc,xa,yb,zc->mxyz", "X", "W0", "W1", "W2")),
                weights=("W0", "W1", "W2"),
                note="M is 256 in the paper" if row[0] == 64 else "",
            )


def convolutions(*, quick: bool) -> Iterator[Case]:
    """Convolutions, plain and in groups, and the WaveNet block."""
    yield from simple(
        "conv",
        "N C H W F KH KW",
        [(2, 4, 20, 20, 4, 3, 3) if quick else (32, 4, 56, 56, 4, 3, 3)],
        (np_.conv_taps, np_.conv_windows),
        (onnx.conv,),
        weights=("Weight", "Bias"),
    )
    rows: Rows = [(c, side) for c, side in ((4, 56), (8, 28), (16, 14), (32, 7))]
    yield from simple(
        "gconv",
        "N G C F H W KH KW",
        [(2, 4, 4, 4, 14, 14, 3, 3)]
        if quick
        else [(32, 32, c, c, side, side, 3, 3) for c, side in rows],
        (np_.conv_taps, np_.gconv_windows),
        (onnx.gconv,),
        weights=("Weight", "Bias"),
        shapes=_flat_groups,
    )
    length = 200 if quick else 4000
    yield from simple(
        "wavenet",
        "B RES DIL SKIP REC DILATION",
        [(1, 32, 32, 256, length, dilation) for dilation in (1, 32)],
        (np_.wavenet,),
        tuple(
            onnx.wavenet(joined=joined, products=products)
            for joined in (False, True)
            for products in (False, True)
        ),
        weights=tuple(
            f"{kind}{part}" for part in ("Filter", "Gate", "Res", "Skip") for kind in "WB"
        ),
    )


def _flat_groups(s: SimpleNamespace) -> dict[str, tuple[int, ...]]:
    return {
        "I": (s.N, s.G * s.C, s.H, s.W),
        "Weight": (s.G * s.F, s.C, s.KH, s.KW),
        "Bias": (s.G * s.F,),
    }


def norms(*, quick: bool) -> Iterator[Case]:
    """Group normalization in one kernel and in two, layer normalization."""
    rows: Rows = [(4, 32, 16, 12, 12), (32, 32, 16, 48, 48)]
    forms = (
        onnx.group_normalization,
        onnx.group_by_instance,
        onnx.group_by_layer,
        onnx.group_by_moments,
    )
    for row in [(2, 4, 4, 6, 6)] if quick else rows:
        sizes = sized("N G D H W", row)
        n, g, *image = row
        flat = {"N": n * g, "K": image[0] * image[1] * image[2]}
        one = (Step("group_norm", "group_norm", sizes),)
        two = (
            Step("group_norm_two_kernels", "group_norm_moments", flat),
            Step("group_norm_two_kernels", "group_norm_apply", sizes),
        )
        for name, steps in (("group_norm", one), ("group_norm_two_kernels", two)):
            yield Case(
                name,
                steps,
                (np_.group_norm,),
                forms,
                outputs=("O",),
                weights=("Gamma", "Beta"),
                shapes=_flat_channels,
            )
    yield from simple(
        "layer_norm", "T B C", [(7, 32, 64)], (np_.layer_norm,), (onnx.layer_norm,)
    )


def _flat_channels(s: SimpleNamespace) -> dict[str, tuple[int, ...]]:
    channels = s.G * s.D
    return {"I": (s.N, channels, s.H, s.W), "Gamma": (channels,), "Beta": (channels,)}


def moments(*, quick: bool) -> Iterator[Case]:
    """The Moments family."""
    sums = (onnx.row_sum, onnx.row_sum_product)
    means = (onnx.row_mean, onnx.row_mean_product)
    squares = (onnx.row_squares, onnx.row_squares_product)
    family: dict[str, tuple[tuple[NumpyForm, ...], tuple[OnnxForm, ...]]] = {
        "row_sum": ((np_.row_sum, np_.row_sum_product), sums),
        "row_mean": ((np_.row_mean, np_.row_mean_product), means),
        "row_squares": ((np_.row_squares, np_.row_squares_product), squares),
        "row_variance": (
            (np_.row_variance, np_.row_variance_product),
            tuple(onnx.row_variance(b) for b in squares),
        ),
        "row_sums": (
            (np_.row_sums, np_.row_sums_product),
            tuple(onnx.row_sums(a, b) for a in sums for b in squares),
        ),
        "row_moments": (
            (np_.row_moments, np_.row_moments_product),
            tuple(onnx.row_moments(a, b) for a in means for b in squares),
        ),
    }
    rows: Rows = [(16, 256)] if quick else [(128, 2304), (1024, 36864)]
    for definition, (numpy, forms) in family.items():
        yield from simple("moments", "N K", rows, numpy, forms, definition=definition)


def lookups(*, quick: bool) -> Iterator[Case]:
    """Sums of rows of tables of as many rows as the original's flag has by default."""
    entries = 1000 if quick else 100_000
    yield Case(
        "lut1",
        (Step("lut1", "lut1", sized("E D B L", (entries, 64, 128, 50))),),
        (np_.lut1,),
        (onnx.lut1,),
        positions={"Index": entries},
        touched={"Table": 128 * 50 * 64 * 4},
    )
    yield Case(
        "lut2",
        (Step("lut2", "lut2", sized("E1 E2 D B L1 L2", (entries, entries, 64, 128, 50, 50))),),
        (np_.lut2,),
        (onnx.lut2,),
        positions={"Index1": entries, "Index2": entries},
        touched=dict.fromkeys(("Table1", "Table2"), 128 * 50 * 64 * 4),
    )


def softmaxes(*, quick: bool) -> Iterator[Case]:
    """The four forms."""
    forms: dict[str, tuple[NumpyForm, OnnxForm]] = {
        "softmax_a": (np_.softmax_a, onnx.softmax),
        "softmax_b": (np_.softmax_bc, onnx.softmax),
        "softmax_c": (np_.softmax_bc, onnx.softmax),
        "softmax_d": (np_.softmax_d, onnx.softmax_d),
    }
    row = (16, 100) if quick else (1024, 1000)
    for definition, (numpy, form) in forms.items():
        yield from simple("softmax", "N D", [row], (numpy,), (form,), definition=definition)
