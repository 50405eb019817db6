"""The programs that Tensor Comprehensions was tested with, and those it could not run."""

from __future__ import annotations

from tcfuse.types import DType
from tests.targets.language import Written


def _one(text: str, *sizes: dict[str, int], **below: str | int) -> Written:
    return Written(text, sizes or ({},), below)


INFERENCE = {
    "copy_1d": _one("def f(float(N) I) -> (O) { O(i) = I(i) }", {"N": 0}, {"N": 1}, {"N": 37}),
    "copy_2d": _one("def f(float(N, M) I) -> (O) { O(i, j) = I(i, j) }", {"N": 3, "M": 17}),
    "transpose_2d": _one(
        "def f(float(N, M) I) -> (O) { O(j, i) = I(i, j) }",
        {"N": 3, "M": 17},
        {"N": 33, "M": 1},
    ),
    "transpose_4d": _one(
        "def f(float(A, B, C, D) I) -> (O) { O(c, d, b, a) = I(a, b, c, d) }",
        {"A": 3, "B": 5, "C": 2, "D": 7},
    ),
    "scale_1d": _one(
        "def f(float(N) I) -> (O) { O(i) = I(123*i) }", {"N": 1}, {"N": 123}, {"N": 124}
    ),
    "shift_1d": _one("def f(float(N) I) -> (O) { O(i) = I(i - 1) }", {"N": 1}, {"N": 19}),
    "shift_1d_2": _one("def f(float(N) I) -> (O) { O(i) = I(i + 5) }", {"N": 3}, {"N": 19}),
    "conv": _one(
        """def f(float(N, C, H, W) I, float(M, C, KH, KW) W1, float(M) B) -> (tmp, O) {
            tmp(n, m, h, w) +=! I(n, c, h + kh, w + kw) * W1(m, c, kh, kw)
            O(n, m, h, w) = tmp(n, m, h, w) + B(m)
        }""",
        {"N": 2, "C": 3, "H": 7, "W": 9, "M": 4, "KH": 3, "KW": 2},
        {"N": 1, "C": 1, "H": 3, "W": 3, "M": 1, "KH": 3, "KW": 3},
    ),
    "conv_grad": _one(
        """def f(float(N, C, H, W) I, float(M, C, KH, KW) W1, float(N, M, OH, OW) d_O)
            -> (d_I, d_W1, d_B) {
            d_I(n, c, h, w) +=! d_O(n, m, h - kh, w - kw) * W1(m, c, kh, kw)
            d_W1(m, c, kh, kw) +=! d_O(n, m, h - kh, w - kw) * I(n, c, h, w)
            d_B(m) +=! d_O(n, m, h, w)
        }""",
        {"N": 2, "C": 3, "H": 7, "W": 8, "M": 2, "KH": 3, "KW": 2, "OH": 9, "OW": 9},
    ),
    "padded_conv": _one(
        """def f(float(N, C, H, W) I, float(M, C, KH, KW) W1) -> (pad, tmp) {
            pad(n, c, h, w) = I(n, c, h - 2 - 3, w - 3 - 4)
            tmp(n, m, h, w) +=! pad(n, c, 2*h + kh, 3*w + kw) * W1(m, c, kh, kw)
        }""",
        {"N": 2, "C": 2, "H": 9, "W": 11, "M": 3, "KH": 3, "KW": 2},
        {"N": 1, "C": 1, "H": 3, "W": 2, "M": 1, "KH": 3, "KW": 2},
    ),
    "weird_conv": _one(
        """def f(float(N, C, H, W) I, float(M, C, KH, KW) W1) -> (O) {
            O(n, m, h, w) +=! I(n, c, 2*h + 3*w + kh, 2*w + kw) * W1(m, c, kh, kw)
        }""",
        {"N": 2, "C": 2, "H": 23, "W": 7, "M": 3, "KH": 3, "KW": 2},
        {"N": 1, "C": 1, "H": 24, "W": 8, "M": 1, "KH": 2, "KW": 3},
    ),
    "tca": _one(
        "def f(float(A, B, C) I) -> (O) { O(i, j, k) = I(j, i + j, k) }",
        {"A": 3, "B": 8, "C": 2},
        {"A": 3, "B": 3, "C": 1},
    ),
    "tcf": _one(
        """def f(float(A_0, A_1, A_2) A, float(B_0, B_1, B_2) B) -> (O1, O2) {
            O1(i, j, k) = A(i, j, k)
            O2(i, j, k) = B(i, j, k) + O1(0, i, j) where exists O1(0, i, j)
        }""",
        {"A_0": 1, "A_1": 5, "A_2": 3, "B_0": 4, "B_1": 7, "B_2": 2},
        {"A_0": 2, "A_1": 2, "A_2": 9, "B_0": 4, "B_1": 1, "B_2": 3},
    ),
    "tcg": _one(
        """def f(float(A_0, A_1) A, float(B_0, B_1) B, float(C_0, C_1) C) -> (O1, O2, O3) {
            O1(i, j) = A(i, j)
            O2(i, j) = B(i, j) + O1(0, i) * 2
            O3(i, j) = C(i, j) + O2(i, j) - O1(0, j)
        }""",
        {"A_0": 1, "A_1": 5, "B_0": 4, "B_1": 7, "C_0": 9, "C_1": 6},
        {"A_0": 3, "A_1": 2, "B_0": 4, "B_1": 7, "C_0": 1, "C_1": 8},
    ),
    "partial_copy": _one(
        "def f(float(N, M) I) -> (O) { O(i, j) = I(i, j) where i in 3:N - 1 }",
        {"N": 4, "M": 3},
        {"N": 9, "M": 17},
    ),
    "unambiguous_rotate": _one(
        "def f(float(N, M) I) -> (O) { O(i, j) = I(10 + i - j, i + j) where i in 0:10 }",
        {"N": 30, "M": 30},
        {"N": 20, "M": 19},
        {"N": 22, "M": 14},
    ),
    "derived_size": _one(
        "def f(float(10, 19, 10) I) -> (O) { O(i, j) = I(i, i + j, j) }",
    ),
    "partial_assign": _one("def f() -> (O) { O(i, j) = 3 where i in 4:8, j in 3:20 }"),
    "reversed": _one("def f(float(N) B) -> (O) { O(i) = B(10 - i) }", {"N": 3}, {"N": 30}),
    "even": _one("def f(float(N) B) -> (O) { O(i) = B(2*i) }", {"N": 7}, {"N": 8}, {"N": 1}),
    "pairs": _one(
        "def f(float(N) B) -> (O) { O(i) = B(2*i) + B(2*i + 1) }", {"N": 1}, {"N": 7}, {"N": 34}
    ),
    "pair_sums": _one(
        "def f(float(N) B) -> (O) { O(i) +=! B(2*i + k) where k in 0:2 }", {"N": 2}, {"N": 35}
    ),
    "correlation": _one(
        """def f(float(N) B, float(M) C, float(K) D) -> (A) {
            A(i) +=! B(i) * C(i + j) * D(j)
        }""",
        {"N": 9, "M": 30, "K": 5},
        {"N": 1, "M": 1, "K": 1},
    ),
    "fill_like": _one(
        "def f(float(N, M) I) -> (O) { O(i, j) = 2.5 where exists I(i, j) }", {"N": 5, "M": 9}
    ),
}

CORNERS = {
    "scalar": _one("def f() -> (float A) { A = 2.0 }"),
    "scalar_copy": _one("def f(float a) -> (A, B) { A = a\n B() = A() + 1 }"),
    "broadcast": _one("def f(float a) -> (A) { A(i) = a where i in 0:7 }"),
    "broadcast_sized": _one(
        "def f(float(N) b) -> (A) { A(i, j) = b(i) where j in 0:N }", {"N": 1}, {"N": 19}
    ),
    "comparators": _one(
        """def f(float(N) a, float(N) b) -> (A, B, C, D, E, F) {
            A(i) = a(i) < b(i)
            B(i) = a(i) <= b(i)
            C(i) = a(i) > b(i)
            D(i) = a(i) >= b(i)
            E(i) = a(i) == b(i)
            F(i) = a(i) != b(i)
        }""",
        {"N": 21},
    ),
    "logic": _one(
        "def f(bool(N) a, bool(N) b) -> (A) { A(i) = (a(i) && !b(i)) || (b(i) && !a(i)) }",
        {"N": 21},
    ),
    "let": _one(
        "def f(float(N) a) -> (A) { A(i) = t * t + u where t = a(i) + 1, u = t - 2.0 }",
        {"N": 9},
    ),
    "let_in_subscript": _one(
        "def f(float(N) a) -> (A) { A(i) = a(t) where t = 2*i + 1, i in 0:N / 2 }",
        {"N": 1},
        {"N": 9},
    ),
    "temporary": _one(
        "def f(float(N) a) -> (O) { t(i) = a(i) * 2\n O(i) = t(i) + 1 }", {"N": 9}
    ),
    "min_max": _one(
        """def f(float(N) a, float(N) b) -> (O, P, Q) {
            O(i) = min(a(i), max(b(i), 0.5))
            P() max=! min(a(i), b(i))
            Q() min=! max(a(i), b(i))
        }""",
        {"N": 1},
        {"N": 23},
    ),
    "modulo": _one(
        """def f(int32(N) a, float(3) X) -> (O, P) {
            O(i) = a(i) % 3
            P(i) = X(i % 3) where exists a(i)
        }""",
        {"N": 23},
    ),
    "modulo_of_floats": _one(
        """def f(float(N) A, float(N) B, double(N) D) -> (O, P) {
            O(i) = A(i) % B(i) + A(i) % 0.75 - A(i) % -3
            P(i) = D(i) % B(i)
        }""",
        {"N": 0},
        {"N": 37},
    ),
    "modulo_of_a_size": _one(
        "def f(float(N) X, float(M) Y) -> (O) { O(i) = X(i % N) + Y(i) }", {"N": 3, "M": 11}
    ),
    "product_of_sizes": _one(
        """def f(float(N) X) -> (float S, float T) {
            S() +=! X(0) where k in 0:N*N
            T() +=! X(i) * 0.5 where i in 0:N, k in 0:N*N - N
        }""",
        {"N": 1},
        {"N": 5},
    ),
    "quotient_of_sizes": _one(
        """def f(float(N) X, float(K) Y) -> (float S) {
            S() +=! X(k) + Y(0) where k in 0:N / K
        }""",
        {"N": 17, "K": 3},
    ),
    "solved_size": _one(
        "def f(float(2*N + 1) X) -> (float(N) O) { O(i) = X(2*i + 1) - X(2*i) }",
        {"N": 1},
        {"N": 9},
    ),
    "solved_sum": _one(
        "def f(float(N + M) X, float(N) Y) -> (float(M) O) { O(i) = X(i + N) }",
        {"N": 3, "M": 0},
        {"N": 3, "M": 9},
    ),
    "keywords_as_names": _one(
        """def f(float(int, c0) X, float(T_X) long) -> (O) {
            O(mod, and) = X(mod, and) + long(0) + int + not where not = mod * 2
        }""",
        {"int": 3, "c0": 5, "T_X": 2},
    ),
    "triangular_sums": _one(
        "def f(float(N) X) -> (O) { O(i) +=! (k <= i ? X(k) : 0.0) where i in 0:N }",
        {"N": 1},
        {"N": 19},
    ),
    "guarded_padding": _one(
        """def f(float(N) X) -> (O) {
            O(i) = i - 2 >= 0 && i - 2 < N ? X(i - 2) : -1.0 where i in 0:N + 4
        }""",
        {"N": 0},
        {"N": 5},
    ),
    "clamped": _one(
        "def f(float(N) X) -> (O) { O(i) = X(max(min(i - 2, N - 1), 0)) where i in 0:N + 4 }",
        {"N": 1},
        {"N": 21},
    ),
    "by_thirds": _one(
        "def f(float(N) X) -> (O) { O(i) = X((i + 1) / 3 + i % 2) where i in 0:N }",
        {"N": 4},
        {"N": 31},
    ),
}

LAYERS = {
    "softmax_c": _one(
        """def f(float(N, D) I) -> (O, maxVal, expDistance, expSum) {
            maxVal(n) max=! I(n, d)
            expDistance(n, d) = exp(I(n, d) - maxVal(n))
            expSum(n) +=! expDistance(n, d)
            O(n, d) = expDistance(n, d) / expSum(n)
        }""",
        {"N": 1, "D": 1},
        {"N": 5, "D": 33},
    ),
    "softmax_d": _one(
        """def f(float(N, D) I) -> (O, maxVal, expSum) {
            maxVal(n) max=! I(n, d)
            expSum(n) +=! exp(I(n, d) - maxVal(n))
            O(n, d) = exp(I(n, d) - maxVal(n)) / expSum(n)
        }""",
        {"N": 5, "D": 33},
    ),
    "softmax_a": _one(
        """def f(float(N, D) I) -> (O, tmp) {
            tmp(n) max=! I(n, d)
            O(n, d) = exp(I(n, d) - tmp(n))
            tmp(n) +=! O(n, d)
            O(n, d) = O(n, d) / tmp(n)
        }""",
        {"N": 1, "D": 1},
        {"N": 5, "D": 33},
    ),
    "softmax_b": _one(
        """def f(float(N, D) I) -> (O, tmp) {
            tmp(n) max=! I(n, d)
            O(n, d) = exp(I(n, d) - tmp(n))
            tmp(n) = 0.0
            tmp(n) += O(n, d)
            O(n, d) = O(n, d) / tmp(n)
        }""",
        {"N": 5, "D": 33},
    ),
    "concat": _one(
        """def f(float(M) A, float(N) B) -> (float(M + N) O) {
            O(i) = A(i) where i in 0:M
            O(i) = B(i - M) where i in M:M + N
        }""",
        {"M": 0, "N": 5},
        {"M": 7, "N": 18},
    ),
    "concat_pairs": _one(
        """def f(float(32, 16) A, float(32, 16) B) -> (O) {
            O(n, i, m) = i == 0 ? A(n, m) : B(n, m) where i in 0:2
        }""",
    ),
    "indexing": _one(
        "def f(float(H, W) I, int32(L) X) -> (O) { O(l, w) = I(X(l), w) }",
        {"H": 7, "W": 5, "L": 4},
        X="H",
    ),
    "lookup": _one(
        "def f(float(E, D) T, int32(B, L) I) -> (O) { O(b, d) +=! T(I(b, l), d) }",
        {"E": 9, "D": 17, "B": 3, "L": 5},
        {"E": 1, "D": 1, "B": 1, "L": 0},
        I="E",
    ),
    "matmul": _one(
        "def f(float(M, N) A, float(N, K) B) -> (O) { O(m, k) +=! A(m, n) * B(n, k) }",
        {"M": 3, "N": 17, "K": 5},
        {"M": 1, "N": 0, "K": 2},
    ),
    "matmul_twice": _one(
        "def f(float(N, N) A) -> (O) { O(i, j) +=! A(i, k) * A(k, j) }", {"N": 1}, {"N": 19}
    ),
    "batch_matmul": _one(
        """def f(float(B, N, M) X, float(B, M, K) Y) -> (Z) {
            Z(b, n, k) +=! X(b, n, m) * Y(b, m, k)
        }""",
        {"B": 3, "N": 4, "M": 9, "K": 6},
    ),
    "hadamard": _one(
        """def f(float(B, D) U, float(B, D) V, float(B, D) W) -> (Z) {
            Z(b, d) = U(b, d) * V(b, d) * W(b, d)
        }""",
        {"B": 3, "D": 21},
    ),
    "tensordot": _one(
        """def f(float(N, C1, C2, H, W) I0, float(N, C2, C3, H, W) I1) -> (O) {
            O(n, c1, c3, h, w) +=! I0(n, c1, c2, h, w) * I1(n, c2, c3, h, w)
        }""",
        {"N": 2, "C1": 3, "C2": 4, "C3": 2, "H": 5, "W": 6},
    ),
    "conv2d": _one(
        """def f(float(N, C, H, W) I, float(F, C, KH, KW) W1) -> (O) {
            O(n, f, h, w) +=! I(n, c, h + kh, w + kw) * W1(f, c, kh, kw)
        }""",
        {"N": 2, "C": 3, "H": 9, "W": 8, "F": 4, "KH": 3, "KW": 3},
    ),
    "strided_conv": _one(
        """def f(float(N, C, H, W) I, float(F, C, KH, KW) W1, float(SH) a, float(SW) b) -> (O) {
            O(n, f, h, w) +=! I(n, c, 2*h + kh, 3*w + kw) * W1(f, c, kh, kw)
        }""",
        {"N": 2, "C": 3, "H": 9, "W": 8, "F": 4, "KH": 3, "KW": 3, "SH": 1, "SW": 1},
        {"N": 1, "C": 1, "H": 4, "W": 5, "F": 1, "KH": 4, "KW": 4, "SH": 1, "SW": 1},
    ),
    "dilated_by_a_size": _one(
        """def f(float(N) X, float(R) w, float(D) dilation) -> (float(N) O) {
            O(i) +=! (i - D*r >= 0 ? X(i - D*r) : 0.0) * w(r) where i in 0:N
        }""",
        {"N": 19, "R": 3, "D": 4},
        {"N": 2, "R": 2, "D": 1},
    ),
    "group_conv": _one(
        """def f(float(N, G, C, H, W) I, float(G, F, C, KH, KW) W1, float(M) B) -> (O) {
            O(n, g, f, h, w) +=! I(n, g, c, h + kh, w + kw) * W1(g, f, c, kh, kw)
            O(n, g, f, h, w) = O(n, g, f, h, w) + B(f)
        }""",
        {"N": 2, "G": 3, "C": 2, "H": 7, "W": 6, "F": 4, "KH": 3, "KW": 3, "M": 4},
    ),
    "casts": _one(
        """def f(float(N) A, int32(N) B) -> (int32(N) C, double(N) D, uint8(N) E) {
            C(i) = int32(A(i) * 10) + B(i)
            D(i) = double(A(i)) / 3 + B(i)
            E(i) = uint8(B(i) * B(i))
        }""",
        {"N": 23},
    ),
    "layernorm": _one(
        """def f(float(T, B, C) I) -> (O, mean, centered, var) {
            mean(t, b) +=! I(t, b, c) / C
            centered(t, b, c) = I(t, b, c) - mean(t, b)
            var(t, b) +=! centered(t, b, c) * centered(t, b, c)
            var(t, b) = var(t, b) / C
            O(t, b, c) = centered(t, b, c) / sqrt(var(t, b) + 0.001)
        }""",
        {"T": 2, "B": 3, "C": 33},
    ),
    "moments": _one(
        """def f(float(N, K) I) -> (mean, var) {
            mean(n) +=! I(n, k)
            mean(n) = mean(n) / K
            var(n) +=! I(n, k) * I(n, k)
            var(n) = var(n) / K - mean(n) * mean(n)
        }""",
        {"N": 5, "K": 33},
    ),
    "mlp": _one(
        """def f(float(B, M) I, float(N, M) W, float(N) b) -> (O) {
            O(i, n) +=! I(i, m) * W(n, m)
            O(i, n) = O(i, n) + b(n)
            O(i, n) = fmax(O(i, n), 0)
        }""",
        {"B": 3, "M": 17, "N": 5},
    ),
}

QUIRKS = {
    "source_order": _one(
        """def f(float(N) X) -> (A, B) {
            A(i) = X(i) * 2
            B(i) = A(i) + 1
            A(i) = A(i) + 1
        }""",
        {"N": 1},
        {"N": 37},
    ),
    "mutual_use": _one(
        """def f(float(N) X) -> (A, B) {
            A(i) = X(i)
            B(i) = A(i) * 2
            A(i) = B(i) + A(i)
            B(i) = A(i) - B(i)
        }""",
        {"N": 37},
    ),
    "assigned_again": _one(
        """def f(float(N) A, float(N) B) -> (O) {
            O(i) = A(i)
            O(i) = O(i) + B(i)
            O(i) = fmax(O(i), 0)
        }""",
        {"N": 37},
    ),
    "redefined_after_use": _one(
        """def f(float(N, M) X) -> (A, B) {
            A(i) +=! X(i, j)
            B(i, j) = X(i, j) - A(i)
            A(i) max=! B(i, j)
        }""",
        {"N": 3, "M": 19},
        {"N": 1, "M": 1},
    ),
    "reset_of_what_was_set": _one(
        """def f(float(N, M) X, float(N) Y) -> (O) {
            O(i) = Y(i)
            O(i) +=! X(i, j)
        }""",
        {"N": 3, "M": 19},
    ),
    "added_to_what_was_set": _one(
        """def f(float(N, M) X, float(N) Y) -> (O) {
            O(i) = Y(i)
            O(i) += X(i, j)
            O(i) *= X(i, 0)
        }""",
        {"N": 3, "M": 19},
    ),
    "stencil_in_place": _one(
        """def f(float(N) X) -> (O) {
            O(i) = X(i)
            O(i) = (O(i - 1) + O(i) + O(i + 1)) / 3 where i in 1:N - 1
        }""",
        {"N": 2},
        {"N": 3},
        {"N": 41},
    ),
    "shifted_in_place": _one(
        """def f(float(N) X) -> (O) {
            O(i) = X(i)
            O(i) = O(i + 1) where i in 0:N - 1
            O(i) = O(i - 1) where i in 1:N
        }""",
        {"N": 1},
        {"N": 41},
    ),
    "reversed_in_place": _one(
        "def f(float(N) X) -> (O) { O(i) = X(i)\n O(i) = O(N - 1 - i) + i where i in 0:N }",
        {"N": 1},
        {"N": 18},
        {"N": 41},
    ),
    "transposed_in_place": _one(
        "def f(float(N, N) X) -> (O) { O(i, j) = X(i, j)\n O(i, j) = O(j, i) + j }",
        {"N": 1},
        {"N": 19},
    ),
    "summed_in_place": _one(
        "def f(float(N) X) -> (O) { O(i) = X(i)\n O(i) += O(j) where j in 0:N }",
        {"N": 1},
        {"N": 19},
    ),
    "scaled_in_place_while_summed": _one(
        """def f(float(N, M) X, float(N) Y) -> (O) {
            O(i) = Y(i)
            O(i) += O(i) * X(i, j)
        }""",
        {"N": 4, "M": 9},
    ),
    "stencil_of_a_temporary": _one(
        """def f(float(N) X) -> (O) {
            t(i) = X(i)
            t(i) = t(i) + t(i + 1) where i in 0:N - 1
            t(i) = t(i) * 2
            O(i) = t(N - 1 - i) where i in 0:N
        }""",
        {"N": 1},
        {"N": 33},
    ),
    "temporary_written_in_turns": _one(
        """def f(float(N, M) X) -> (O, P) {
            t(i) +=! X(i, j)
            O(i) = t(i)
            t(i) max=! X(i, j)
            P(i) = t(i) - O(i)
            t(i) = P(i)
            P(i) = t(i) * P(i)
        }""",
        {"N": 3, "M": 17},
    ),
    "overlapping_parts": _one(
        """def f(float(N) X) -> (float(N) O) {
            O(i) = X(i)
            O(i) = X(i) + 10 where i in 0:N / 2
            O(i) = O(i) * 3 where i in N / 3:N
            O(i) = 7 where i in 1:min(N, 5)
        }""",
        {"N": 1},
        {"N": 2},
        {"N": 23},
    ),
    "read_while_still_old": _one(
        """def f(float(N) X) -> (A, B) {
            A(i) = X(i)
            B(i) = A(N - 1 - i) where i in 0:N
            A(i) = B(i) * 2 + A(i)
            B(i) = A(N - 1 - i) where i in 0:N
        }""",
        {"N": 1},
        {"N": 34},
    ),
    "half_sums_in_turns": _one(
        """def f(float16(N, M) X) -> (float16(N) O, float16(N) P) {
            O(i) +=! X(i, j)
            P(i) = O(i) * float16(2)
            O(i) max=! X(i, j)
            O(i) = O(i) + P(i)
        }""",
        {"N": 3, "M": 17},
    ),
    "reduced_again_with_a_set_between": _one(
        """def f(float(N, M) X) -> (O) {
            O(i) +=! X(i, j)
            O(i) = O(i) / M
            O(i) += X(i, j) * X(i, j)
            O(i) = sqrt(abs(O(i)))
        }""",
        {"N": 3, "M": 17},
    ),
    "part_reduced_again": _one(
        """def f(float(N, M) X) -> (float(N) O) {
            O(i) +=! X(i, j)
            O(i) max=! X(i, j) where i in 0:N / 2
            O(i) min= X(i, j) where i in N / 3:N
        }""",
        {"N": 1, "M": 3},
        {"N": 9, "M": 17},
    ),
    "parts_with_single_iterations_around": _one(
        """def f(float(N) Y) -> (float(N) A) {
            A(i) = Y(i) * 2
            A(i) +=! Y(0) + Y(i) where i in 0:N / 2
            A(i) +=! Y(0) - Y(i) where i in 1:N
            A(i) max=! Y(i + 1) where i in 0:N - 1
        }""",
        {"N": 1},
        {"N": 2},
        {"N": 33},
    ),
    "a_sum_that_is_always_empty": _one(
        """def f(float(D, 2*A) X, float(B) Z) -> (O) {
            s() +=! X(k, 3*k + 2) - Z(k) where k in 2:A - 1
            O(i) = s() + Z(A - 1 - i)
        }""",
        {"A": 3, "B": 3, "D": 2},
        {"A": 1, "B": 5, "D": 1},
    ),
    "nothing_inside_a_border": _one(
        """def f(float(N, M) X) -> (O) {
            O(i, j) = X(i, j)
            O(i, j) = X(i - 1, j) + X(i, j + 1) where i in 1:N - 1, j in 1:M - 1
            O(i, j) = O(i, j) * 2
        }""",
        {"N": 1, "M": 1},
        {"N": 1, "M": 9},
        {"N": 2, "M": 2},
        {"N": 7, "M": 18},
    ),
}


def _typed(dtype: str) -> Written:
    """Reductions of a type: whole, over parts, and over nothing if that is not NaN."""
    nothing = ({"N": 1, "M": 0}, {"N": 9, "M": 0})
    sizes = () if dtype.startswith("float8") else nothing
    return _one(
        f"""def f({dtype}(N) X, {dtype}(N, M) Y) -> ({dtype}(N) O, {dtype}(N) P) {{
            O(i) = X(i)
            O(i) max=! Y(i, j) where i in 0:N / 2
            O(i) min= Y(i, j) where i in N / 3:N
            P(i) min=! Y(i, j)
            P(i) min=! Y(i, j) where i in 1:N
            P(i) max= X(i)
        }}""",
        *sizes,
        {"N": 9, "M": 5},
    )


def _held(dtype: DType) -> Written:
    """Temporaries of a type that several elements of share a byte outside of kernels."""
    wide = "float" if dtype.is_float else "int32"
    return _one(
        f"""def f({wide}(N) X, {wide}(N, M) Y) -> ({wide}(N) O, {wide}(N) P, {wide}(N, M) Q) {{
            A(i) = {dtype.tc}(X(i))
            B(i, j) = {dtype.tc}(Y(i, j))
            S(i) +=! B(i, j)
            L(i) max=! B(i, j)
            O(i) = A(i) * 2 + S(i)
            P(i) = L(i)
            Q(i, j) = A(i) < B(i, j) ? A(i) : B(i, j)
        }}""",
        {"N": 1, "M": 3},
        {"N": 9, "M": 18},
    )


TYPES = {f"reductions_of_{d.tc}": _typed(d.tc) for d in DType if d.bits >= 8}
TYPES |= {f"temporaries_of_{d.tc}": _held(d) for d in DType if d.bits < 8}
TYPES |= {
    "bits": _one(
        """def f(float(N) X, int32(N) I, double(N) D) -> (A, B, C, E, F) {
            A(i) = as_int32(X(i))
            B(i) = as_float(I(i))
            C(i) = as_uint64(D(i))
            E(i) = as_uint8(float8e5m2(X(i)))
            F(i) = float(as_float4e2m1(uint4(I(i))))
        }""",
        {"N": 1},
        {"N": 21},
    ),
}

# Outputs that start from what the caller's buffer holds.
UPDATES = {
    "added_to_a_buffer": _one(
        "def f(float(N, M) X) -> (float(N) O) { O(i) += X(i, j) }",
        {"N": 1, "M": 0},
        {"N": 9, "M": 17},
    ),
    "matmul_in_place": _one(
        "def f(float(M, N) A, float(N, K) B) -> (C) { C(m, k) += A(m, n) * B(n, k) }",
        {"M": 3, "N": 17, "K": 5},
    ),
    "step_of_a_buffer": _one(
        "def f(float(N) G) -> (float(N) W) { W(i) = W(i) - 0.1 * G(i) }", {"N": 1}, {"N": 33}
    ),
    "neighbours_in_a_buffer": _one(
        """def f(float(N) X) -> (float(N) O) {
            O(i) = O(i) + O(i + 1) * X(i) where i in 0:N - 1
        }""",
        {"N": 1},
        {"N": 33},
    ),
    "buffer_used_and_replaced": _one(
        """def f(float(N) X) -> (float(N) O, P) {
            P(i) = O(N - 1 - i) where i in 0:N
            O(i) = X(i)
            O(i) max= P(i)
        }""",
        {"N": 1},
        {"N": 33},
    ),
    "buffer_with_an_origin": _one(
        "def f(float(N) X) -> (O) { O(i) *= X(i - 3) }", {"N": 0}, {"N": 21}
    ),
    "two_buffers": _one(
        """def f(float(N, M) X) -> (float(N) A, float(M) B, float S) {
            A(i) += X(i, j)
            B(j) max= X(i, j) + A(i)
            S() += A(i)
        }""",
        {"N": 3, "M": 17},
    ),
}
