"""Products of matrices, as predicted by ``graph.products`` and as measured, as a table.

``python -m scripts.products`` times ONNX Runtime's MatMul and a kernel's contraction of the
same sizes in turn, on one thread, and prints a line for each.  Both models are of a core with
AVX-512; of them the planner needs the ratio, so that is what to look at.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
import onnx_ir as ir

import tcfuse
from tcfuse.graph.products import Product, kernel_us, native_us
from tcfuse.ort.timing import bind

SIZES = (
    *(Product(1, m, n, k, fixed=True) for m, k, n in ((1024, 16, 16), (4096, 16, 16))),
    *(Product(1, m, n, k, fixed=True) for m, k, n in ((128, 200, 64), (128, 64, 32))),
    *(Product(1, m, n, k, fixed=True) for m, k, n in ((256, 64, 4), (512, 256, 256))),
    *(Product(64, m, n, k) for m, k, n in ((4, 4, 4), (16, 16, 16), (16, 16, 64))),
    *(Product(64, m, n, k) for m, k, n in ((26, 72, 26), (49, 32, 49), (49, 49, 32))),
    *(Product(12, m, n, k) for m, k, n in ((128, 64, 128), (128, 128, 64))),
    *(Product(64, m, n, k, turned=True) for m, k, n in ((16, 16, 16), (26, 72, 26))),
    *(Product(64, m, n, k, turned=True) for m, k, n in ((49, 32, 49), (64, 64, 64))),
    Product(12, 128, 128, 64, turned=True),
)
ROUNDS = 9
TURN_S = 0.01


def text_of(p: Product) -> str:
    """The product as a definition."""
    batch, b = (f"{p.batches}, ", "b, ") if p.batches > 1 else ("", "")
    right = f"{p.columns}, {p.depth}" if p.turned else f"{p.depth}, {p.columns}"
    read = "n, k" if p.turned else "k, n"
    return (
        f"def f(float({batch}{p.rows}, {p.depth}) A, float({batch}{right}) B) -> (C) "
        f"{{ C({b}m, n) +=! A({b}m, k) * B({b}{read}) }}"
    )


def model_of(p: Product, right: np.ndarray) -> ir.Model:
    """The product as a model, the right matrix a constant if it is fixed."""
    batch = (p.batches,) if p.batches > 1 else ()
    a = ir.val("A", ir.DataType.FLOAT, (*batch, p.rows, p.depth))
    b = ir.val("B", ir.DataType.FLOAT, right.shape)
    if p.fixed:
        b.const_value = ir.tensor(right, name="B")
    nodes, read = [], b
    if p.turned:
        order = (*range(len(batch)), len(batch) + 1, len(batch))
        nodes.append(ir.node("Transpose", [b], attributes={"perm": order}))
        read = nodes[-1].outputs[0]
    nodes.append(ir.node("MatMul", [a, read]))
    made = nodes[-1].outputs[0]
    made.name, made.dtype = "C", ir.DataType.FLOAT
    made.shape = ir.Shape((*batch, p.rows, p.columns))
    graph = ir.Graph(
        [a] if p.fixed else [a, b],
        [made],
        nodes=nodes,
        initializers=[b] if p.fixed else [],
        opset_imports={"": 17},
        name="product",
    )
    return ir.Model(graph, ir_version=9)


def measured(p: Product) -> tuple[float, float]:
    """Microseconds of ONNX Runtime's and of the kernel's."""
    import onnxruntime as ort

    random = np.random.default_rng(0)
    batch = (p.batches,) if p.batches > 1 else ()
    right = (p.columns, p.depth) if p.turned else (p.depth, p.columns)
    a = random.standard_normal((*batch, p.rows, p.depth), np.float32)
    b = random.standard_normal((*batch, *right), np.float32)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    proto = ir.to_proto(model_of(p, b)).SerializeToString()
    session = ort.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
    native = bind(session, {"A": a} if p.fixed else {"A": a, "B": b})
    out = np.empty((*batch, p.rows, p.columns), np.float32)
    kernel = tcfuse.define(text_of(p), quiet=True)["f"].bind(a, b, out=[out])
    kernel()
    times = [(turn(native), turn(kernel)) for _ in range(ROUNDS)]
    return median(t for t, _ in times), median(t for _, t in times)


def turn(call: Callable[[], object]) -> float:
    """Microseconds of a call, by this thread's clock."""
    count, start = 0, time.thread_time()
    while (spent := time.thread_time() - start) < TURN_S:
        call()
        count += 1
    return spent / count * 1e6


def lines() -> Iterator[str]:
    """The table."""
    heads = ("batches", "rows, depth, columns", "right", "ORT us", "predicted", "kernel us")
    yield f"| {' | '.join((*heads, 'predicted', 'ratio', 'predicted'))} |"
    yield "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for p in SIZES:
        native, kernel = measured(p)
        kind = "constant" if p.fixed else "transposed" if p.turned else "plain"
        theirs, ours = native_us(p), kernel_us(p)
        times = f"{native:.1f} | {theirs:.1f} | {kernel:.1f} | {ours:.1f}"
        ratios = f"{native / kernel:.2f} | {theirs / ours:.2f}"
        sizes = f"{p.batches} | {p.rows}, {p.depth}, {p.columns} | {kind}"
        yield f"| {sizes} | {times} | {ratios} |"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    for line in lines():
        print(line, flush=True)
