"""Random small definitions of the kinds that composition produces, and inputs for them.

Values stay of moderate size, and only integers, indices and inputs decide which branch is
taken, so that rounding changes a result by a rounding only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
from hypothesis import strategies as st

from tcfuse.tc.checked import CheckedDef
from tcfuse.types import DType

FLOATS = ("float", "float", "float", "float", "double", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
CONSTANTS = ("1", "3", "4", "7", "16", "17", "33")
SYMBOLS = ("n0", "n1")
SYMBOL_SIZES = (0, 1, 3, 7, 17, 33)
MOST_POINTS = 12_000
UNARY = (
    "tanh({})",
    "sigmoid({})",
    "(-{})",
    "abs({})",
    "exp(-abs({}))",
    "erf({})",
    "sqrt(abs({}) + 1)",
)
BINARY = (
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "min({}, {})",
    "max({}, {})",
    "({} / (abs({}) + 1))",
)
INTEGER_BINARY = (
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "min({}, {})",
    "max({}, {})",
    "({} / (bitor(abs({}), 1)))",
    "({} % (bitor(abs({}), 1)))",
    "tdiv({}, {})",
    "tmod({}, {})",
    "bitxor({}, {})",
    "bitand({}, {})",
)


@dataclass(frozen=True)
class Made:
    """A tensor that may be read: its type and the size of each dimension."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    is_input: bool


@dataclass
class Draft:
    """A definition while it grows."""

    draw: st.DrawFn
    made: list[Made] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    gathers: list[tuple[str, str]] = field(default_factory=list)
    joined: set[str] = field(default_factory=set)

    # ------------------------------------------------------------------ small choices

    def among(self, *items: object) -> object:
        return self.draw(st.sampled_from(items))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def size(self) -> str:
        return str(self.among(*SYMBOLS, *SYMBOLS, *CONSTANTS))

    def input(self, dtype: str, shape: tuple[str, ...]) -> Made:
        known = Made(f"X{len(self.made)}", dtype, shape, is_input=True)
        self.made.append(known)
        return known

    # ------------------------------------------------------------------ expressions

    def leaf(self, kind: str, axes: Mapping[str, str]) -> str:
        """A read of some tensor all of whose dimensions are among ``axes``, as ``kind``."""
        fitting = [m for m in self.made if _kind(m.dtype) == kind and _embeds(m.shape, axes)]
        if not fitting or self.chance(20):
            names = self.draw(st.permutations(sorted(axes)))
            shape = tuple(axes[n] for n in names[: self.draw(st.integers(0, len(names)))])
            pool = {"float": FLOATS, "int": INTEGERS, "bool": ("bool",)}[kind]
            fitting = [self.input(str(self.among(*pool)), shape)]
        tensor = self.draw(st.sampled_from(fitting))
        free = sorted(axes)
        subscripts = []
        for size in tensor.shape:
            index = self.draw(st.sampled_from([i for i in free if axes[i] == size]))
            free.remove(index)
            subscripts.append(index)
        return f"{tensor.name}({', '.join(subscripts)})" if subscripts else f"{tensor.name}()"

    def special(self, axes: Mapping[str, str]) -> str:
        """A read that is shifted, strided, split, flipped or gathered along one axis."""
        if not axes:
            return self.leaf("float", axes)
        index = str(self.among(*sorted(axes)))
        size = axes[index]
        others = [i for i in sorted(axes) if i != index and self.chance(50)]
        at = self.draw(st.integers(0, len(others)))
        rest = [axes[i] for i in others]

        def read(extent: str, subscript: str) -> str:
            shape = (*rest[:at], extent, *rest[at:])
            tensor = self.input(str(self.among(*FLOATS)), shape)
            return f"{tensor.name}({', '.join([*others[:at], subscript, *others[at:]])})"

        match self.among("shift", "stride", "flip", "pad", "gather", "masked", "mod", "part"):
            case "shift":
                return read(f"{size} + 2", f"{index} + {self.among(0, 1, 2)}")
            case "stride":
                return read(f"2*{size}", f"2*{index} + {self.among(0, 1)}")
            case "flip":
                return read(size, f"{size} - 1 - {index}")
            case "pad":
                off = self.among(1, 2)
                where = f"{index} >= {off} && {index} - {off} < {size}"
                return f"({where} ? {read(size, f'{index} - {off}')} : 0.25)"
            case "masked":
                return f"({self.condition(axes)} ? {read(size, index)} : 0.5)"
            case "mod":
                return read("4", f"({index} + 1) % 4")
            case "part":
                return read(f"{size} + 1", f"({index} + 1) / 3 + {index} % 2")
        chosen = [i for i in sorted(axes) if self.chance(60)] or [index]
        kind = str(self.among("int64", "int32"))
        positions = self.input(kind, tuple(axes[i] for i in chosen))
        self.gathers.append((positions.name, "5"))
        subscript = f"{positions.name}({', '.join(chosen)})"
        if self.chance(30):
            return f"({self.condition(axes)} ? {read('5', subscript)} : 0.125)"
        return read("5", subscript)

    def condition(self, axes: Mapping[str, str]) -> str:
        """A truth value that does not depend on rounding."""
        if axes and self.chance(40):
            index = self.among(*sorted(axes))
            return f"{index} {self.among('<', '>=', '==', '!=')} {self.among(0, 1, 2, 5)}"
        if self.chance(50):
            return self.leaf("bool", axes)
        less = self.among("<", "<=", ">", "!=")
        return f"{self.leaf('int', axes)} {less} {self.leaf('int', axes)}"

    def value(self, kind: str, axes: Mapping[str, str], depth: int) -> str:
        if kind == "bool":
            a = self.condition(axes)
            if depth and self.chance(60):
                joint = str(self.among("({}) && ({})", "({}) || ({})", "!({0})"))
                return joint.format(a, self.condition(axes))
            return a
        if depth == 0 or self.chance(20):
            if kind == "float" and self.chance(40):
                return self.special(axes)
            if self.chance(10):
                return str(self.among("0.5", "-1.25", "2") if kind == "float" else 3)
            return self.leaf(kind, axes)
        a = self.value(kind, axes, depth - 1)
        if kind == "float" and self.chance(25):
            return str(self.among(*UNARY)).format(a)
        if self.chance(10):
            return f"({self.condition(axes)} ? {a} : {self.value(kind, axes, depth - 1)})"
        table = BINARY if kind == "float" else INTEGER_BINARY
        return str(self.among(*table)).format(a, self.value(kind, axes, depth - 1))

    # ------------------------------------------------------------------ statements

    def statement(self, name: str) -> None:
        axes = self.axes()
        match self.among("point", "point", "reduce", "reduce", "softmax", "concat"):
            case "point":
                self.pointwise(name, axes)
            case "reduce":
                self.reduction(name, axes)
            case "softmax":
                self.softmax(name, axes)
            case "concat":
                self.concatenation(name, axes)

    def axes(self) -> dict[str, str]:
        """Indices with their sizes, often those of a tensor that is there already."""
        shape: tuple[str, ...]
        if self.made and self.chance(70):
            shape = self.draw(st.sampled_from(self.made)).shape
        else:
            shape = tuple(self.size() for _ in range(self.draw(st.integers(0, 3))))
        if any(not s.isidentifier() and not s.isdigit() for s in shape):
            shape = (self.size(),)
        return dict(zip("ijkl", shape, strict=False))

    def written(self, name: str, kind: str, shape: tuple[str, ...]) -> str:
        """Declare a written tensor; its element type."""
        pool = {"float": FLOATS, "int": INTEGERS, "bool": ("bool",)}[kind]
        dtype = str(self.among(*pool))
        self.made.append(Made(name, dtype, shape, is_input=False))
        return dtype

    def pointwise(self, name: str, axes: dict[str, str]) -> None:
        kind = str(self.among("float", "float", "float", "int", "bool"))
        order = self.draw(st.permutations(sorted(axes)))
        value = self.value(kind, axes, self.draw(st.integers(0, 3)))
        let = ""
        if kind == "float" and self.chance(25):
            let, value = f", t = {value}", f"t * {self.among('t', 'sigmoid(t)', '0.5')}"
        if kind == "float":
            value = f"tanh({value})" if self.chance(50) else value
        dtype = self.written(name, kind, tuple(axes[i] for i in order))
        self.line(name, order, "=", value if kind == "bool" else f"{dtype}({value})", axes, let)

    def reduction(self, name: str, axes: dict[str, str]) -> None:
        kind = str(self.among("float", "float", "float", "int", "bool"))
        order = self.draw(st.permutations(sorted(axes)))
        kept = order[: self.draw(st.integers(0, len(order)))]
        operator = str(self.among("+", "+", "max", "min", "*"))
        if kind == "bool":
            operator = str(self.among("max", "min"))
        value = self.value(kind, axes, self.draw(st.integers(0, 2)))
        if kind == "float":
            value = f"tanh({value})" if operator == "+" else value
            value = f"1 + 0.0078125 * tanh({value})" if operator == "*" else value
        dtype = self.written(name, kind, tuple(axes[i] for i in kept))
        if kind != "bool":
            value = f"{dtype}({value})"
        self.line(name, kept, f"{operator}=!", value, axes, "")

    def softmax(self, name: str, axes: dict[str, str]) -> None:
        if not axes:
            self.pointwise(name, axes)
            return
        order = sorted(axes)
        row = [i for i in order if i != self.among(*order)]
        point, at = ", ".join(order), ", ".join(row)
        value = self.value("float", axes, 1)
        shape = tuple(axes[i] for i in order)
        narrow = tuple(axes[i] for i in row)
        self.line(f"M{name}", row, "max=!", f"float({value})", axes, "")
        self.line(f"E{name}", order, "=", f"exp(float({value}) - M{name}({at}))", axes, "")
        self.line(f"S{name}", row, "+=!", f"E{name}({point})", axes, "")
        self.made.append(Made(f"S{name}", "float", narrow, is_input=False))
        dtype = self.written(name, "float", shape)
        self.line(name, order, "=", f"{dtype}(E{name}({point}) / S{name}({at}))", axes, "")

    def concatenation(self, name: str, axes: dict[str, str]) -> None:
        if not axes:
            self.pointwise(name, axes)
            return
        order = sorted(axes)
        along = order[-1] if self.chance(60) else order[0]
        a, b = axes[along], self.size()
        total = f"{a} + {b}"
        if a.isdigit() and b.isdigit():
            total = str(int(a) + int(b))
        first = self.input("float", tuple(axes[i] for i in order))
        second = self.input("float", tuple(b if i == along else axes[i] for i in order))
        moved = [f"{i} - {a}" if i == along else i for i in order]
        self.joined.add(name)  # a temporary has the shape of its first statement
        self.written(name, "float", tuple(total if i == along else axes[i] for i in order))
        self.line(name, order, "=", f"float({first.name}({', '.join(order)}))", axes, "")
        text = f"{name}({', '.join(order)}) = {second.name}({', '.join(moved)}) where "
        ranges = [f"{i} in {a}:{total}" if i == along else f"{i} in 0:{axes[i]}" for i in order]
        self.lines.append(text + ", ".join(ranges))

    def line(
        self,
        name: str,
        indices: list[str],
        assign: str,
        value: str,
        axes: Mapping[str, str],
        let: str,
    ) -> None:
        names = dict.fromkeys((*indices, *sorted(axes)))
        clauses = ", ".join(f"{i} in 0:{axes[i]}" for i in names) + let
        where = f" where {clauses.strip(', ')}" if clauses else ""
        self.lines.append(f"{name}({', '.join(indices)}) {assign} {value}{where}")


@dataclass(frozen=True)
class Program:
    """A definition's text and what its inputs must satisfy.

    Attributes:
        gathers: Inputs that are positions, with the size they index.
    """

    text: str
    gathers: tuple[tuple[str, str], ...]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A definition of one to five statements, some of whose results are returned."""
    draft = Draft(draw)
    names = [f"T{k}" for k in range(draw(st.integers(1, 4)))]
    for name in names:
        draft.statement(name)
    written = {m.name: m for m in draft.made if not m.is_input}
    returned = [n for n in names if n in (names[-1], *draft.joined) or draft.chance(35)]
    params = ", ".join(_declared(m) for m in draft.made if m.is_input)
    returns = ", ".join(_declared(written[n]) for n in returned)
    body = "".join(f"  {line}\n" for line in draft.lines)
    text = f"def f({params}) -> ({returns}) {{\n{body}}}\n"
    return Program(text, tuple(draft.gathers))


def arrays(
    program: Program, checked: CheckedDef, sizes: Mapping[str, int], seed: int, *, wrong: bool
) -> dict[str, np.ndarray]:
    """Inputs; with ``wrong`` some position lies outside what it indexes."""
    rng = np.random.default_rng(seed)
    positions = dict(program.gathers)
    found: dict[str, np.ndarray] = {}
    for name in checked.inputs:
        kind = checked.tensors[name]
        shape = tuple(int(eval(str(s), {}, dict(sizes))) for s in kind.shape)
        if name in positions:
            elements = rng.integers(0, int(positions[name]), shape)
            if wrong and elements.size:
                at = int(rng.integers(elements.size))
                elements.flat[at] = rng.choice([-1, int(positions[name]), 1 << 30, -(1 << 31)])
            found[name] = elements.astype(kind.dtype.numpy)
        else:
            found[name] = random_elements(kind.dtype, shape, rng)
    return found


def random_elements(
    dtype: DType, shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    """Elements of moderate size, integers over their whole range now and then."""
    if dtype is DType.BOOL:
        return rng.random(shape) < 0.5
    if dtype.is_float:
        return (rng.integers(-512, 513, shape) / 128).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    if rng.random() < 0.3:
        return rng.integers(limits.min, limits.max, shape, dtype.numpy, endpoint=True)
    return rng.integers(max(limits.min, -9), 10, shape).astype(dtype.numpy)


def points(checked: CheckedDef, sizes: Mapping[str, int]) -> int:
    """Instances of the largest statement."""
    largest = 0
    for item in checked.statements:
        highs = [
            str(getattr(r.high, "name", getattr(r.high, "value", 40))) for r in item.ranges
        ]
        largest = max(largest, prod(int(eval(h, {}, dict(sizes))) for h in highs))
    return largest


def _declared(made: Made) -> str:
    return (
        f"{made.dtype}({', '.join(made.shape)}) {made.name}"
        if made.shape
        else f"{made.dtype} {made.name}"
    )


def _kind(dtype: str) -> str:
    if dtype == "bool":
        return "bool"
    return "float" if dtype in FLOATS else "int"


def _embeds(shape: tuple[str, ...], axes: Mapping[str, str]) -> bool:
    """Whether the sizes of ``shape`` are among those of ``axes``, each used once."""
    free = sorted(axes.values())
    for size in shape:
        if size not in free:
            return False
        free.remove(size)
    return True
