"""Definitions out of all proportion end in a sentence, soon."""

from collections.abc import Iterable

import pytest

from tcfuse.errors import TcError
from tcfuse.tc.kernel_form import kernel_form
from tcfuse.tc.limits import MOST_STATEMENTS
from tcfuse.tc.parser import parse
from tcfuse.tc.sema import check

HUGE = 10**30


def of(body: str, params: str = "float(N) X") -> str:
    return f"def f({params}) -> (float(N) O) {{ {body} }}"


def numbered(count: int, item: str, joint: str = " + ") -> str:
    return joint.join(item.format(k) for k in range(count))


def indices(count: int) -> Iterable[str]:
    return (f"i{k}" for k in range(count))


HOSTILE = {
    "statements": of("O(i) = X(i)" + "\nO(i) = O(i) + X(i)" * MOST_STATEMENTS),
    "variables": (
        f"def f(float({', '.join(['N'] * 500)}) X) -> (O) {{"
        f" O({', '.join(indices(500))}) = X({', '.join(indices(500))}) }}"
    ),
    "operators": of("O(i) = " + numbered(7_000, "X(i)")),
    "subscript": of("O(i) = X(" + numbered(3000, "i") + ")"),
    "range": of(f"O(i) +=! X(0) where i in 0:N, k in 0:{HUGE}"),
    "offset": of(f"O(i) = X(i + {HUGE}) where i in 0:N"),
    "guarded_offset": of(f"O(i) = i > 5 ? X(i + {HUGE}) : 0.0 where i in 0:N"),
    "divisor": of(f"O(i) = X(i / {HUGE}) where i in 0:N"),
    "value": of(f"O(i) = X(i) + {HUGE} where i in 0:N"),
    "dimension": f"def f(float({HUGE}) X) -> (O) {{ O(i) = X(i) }}",
    "doubled_lets": of(
        "O(i) = X(t60) where i in 0:N, t0 = i, "
        + ", ".join(f"t{k + 1} = t{k} + t{k}" for k in range(60))
    ),
    "sizes": (
        f"def f({numbered(300, 'float(N{0}) X{0}', ', ')}) -> (O) {{"
        f" O(i) = {numbered(300, 'X{}(i)')} }}"
    ),
    "products": of(
        "O(i) +=! X(i) where i in 0:N, k in 0:" + numbered(10, "(N + {0}*M + K + 1)", "*"),
        "float(N) X, float(M, K) Y",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_refused(name):
    with pytest.raises(TcError, match=r"too|more than|out of bounds"):
        kernel_form(check(parse(HOSTILE[name]), affine=False))
