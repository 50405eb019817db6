"""Sizes that are not constant: what still has a definition, and why the rest does not."""

from __future__ import annotations

import pytest

from tcfuse.errors import UnsupportedError

FAR = 2**63 - 1


def slice_of(lower, size, out, start, end, step=1):
    vector = "int64(1)"
    return lower(
        "Slice",
        [f"float({size})", vector, vector, vector, vector],
        [f"float({out})"],
        constants={1: [start], 2: [end], 3: [0], 4: [step]},
    )


@pytest.mark.parametrize(
    ("out", "start", "end", "step", "read"),
    [
        ("N - 2", 2, FAR, 1, "X(i + 2)"),
        ("M", 1, FAR, 2, "X(2 * i + 1)"),
        ("1", -1, FAR, 1, "X(i + N - 1)"),
        ("M", -4, FAR, 1, "X(i + N - M)"),
        ("2", -3, -1, 1, "X(i + N - 3)"),
        ("N", -1, -FAR, -1, "X(N - 1 - i)"),
    ],
)
def test_slice_counts_from_either_end(lower, out, start, end, step, read):
    assert f"= {read} where" in slice_of(lower, "N", out, start, end, step)


def test_slice_that_starts_anywhere_is_refused(lower):
    with pytest.raises(UnsupportedError, match="dimension of size N"):
        slice_of(lower, "N", "M", -3, 5)


@pytest.mark.parametrize(
    ("source", "target", "read"),
    [
        ("N, 12, 64", "N, 768", "X(i, j / 64, j % 64)"),
        ("N, S, 768", "N, S, 12, 64", "X(i, j, k * 64 + l)"),
        ("N, 4, 8", "4*N, 8", "X(i / 4, i % 4, j)"),
        ("2, 6, 4, 5", "12, 20", "X(i / 6, i % 6, j / 5, j % 5)"),
        ("N, 1, M", "N, M, 1", "X(i, 0, j)"),
        ("1, 1", "", "X(0, 0)"),
        ("", "1, 1", "X"),
        ("0, 3", "3, 0", "X(0, 0)"),
    ],
)
def test_reshape_matches_dimensions_in_groups(lower, source, target, read):
    source, target = (f"float({s})" if s else "float" for s in (source, target))
    assert f"= {read}" in lower("Reshape", [source, "int64(2)"], [target])


def test_reshape_across_a_size_is_refused(lower):
    with pytest.raises(UnsupportedError, match="across a dimension of size S"):
        lower("Reshape", ["float(N, S, 8)", "int64(2)"], ["float(M, 8)"])


def test_reshape_to_another_count_is_refused(lower):
    with pytest.raises(UnsupportedError, match="6 elements do not become 8"):
        lower("Reshape", ["float(2, 3)", "int64(1)"], ["float(8)"])


@pytest.mark.parametrize(
    ("indices", "size", "read"),
    [
        (-1, "N", "X(N - 1)"),
        (3, "N", "X(3)"),
        ([-3, -2, -1], "N", "X(i + N - 3)"),
        ([4, 2, 0], "5", "X(4 - 2 * i)"),
        ([-1, 0], "N", "X(at < 0 ? at + N : at)"),
        ([0, 1, 3], "4", "X(at < 0 ? at + 4 : at)"),
    ],
)
def test_gather_of_even_steps_is_affine(lower, indices, size, read):
    shape = "" if isinstance(indices, int) else f"({len(indices)})"
    types = [f"float({size})", f"int64{shape}"], [f"float{shape}"]
    assert f"= {read}" in lower("Gather", *types, constants={1: indices})


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "attributes", "reason"),
    [
        ("Tile", ["float(N)", "int64(1)"], ["float(2*N)"], {}, "dimension of size N"),
        (
            "GroupNormalization",
            ["float(N, C)", "float(C)", "float(C)"],
            ["float(N, C)"],
            {"num_groups": 2},
            "C channels",
        ),
        (
            "Pad",
            ["float(N)", "int64(2)"],
            ["float(N + 2)"],
            {"mode": "reflect"},
            "of N elements",
        ),
        ("Softmax", ["float(N)"], ["float(N)"], {"axis": 2}, "outside rank 1"),
    ],
)
def test_refusals_say_why(lower, op_type, inputs, outputs, attributes, reason):
    constants = {1: [1, 1] if op_type == "Pad" else [2]}
    with pytest.raises(UnsupportedError, match=reason):
        lower(op_type, inputs, outputs, attributes, constants=constants)


def test_shapes_known_at_run_time_only_are_refused(lower):
    with pytest.raises(UnsupportedError, match="input 1 of ReduceSum is computed at run time"):
        lower("ReduceSum", ["float(N, 3)", "int64(1)"], ["float(N, 1)"])
