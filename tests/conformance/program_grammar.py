"""Random programs of the whole language, with what must come out of their range inference.

A variable's range is written down, or follows from a read that drives it; the bounds of every
tensor are kept beside the text, so that inferred sizes have something to be compared with.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.conformance.program_values import FLOATS, INTEGERS, KINDS, Float, Values

# The end of a range, and a dimension that holds every number below it.
ENDS = {
    **{end: end for end in ("N", "M", "3", "1", "7", "N + 1", "2*N", "N + M")},
    "min(N, M)": "N",
    "(N + 1) / 2": "N",
    "M / 2": "M",
    "max(N, M)": "N + M",
    "N - 1": "N",
}
AFFINE = ("N", "M", "N", "M", "3", "N + 2", "2*N", "N + M")
# A subscript that alone bounds a variable, and the bounds it gives in a dimension {d}.
DRIVERS = {
    "{i}": ("0", "{d}"),
    "{i} - 1": ("1", "{d} + 1"),
    "{i} + 2": ("-2", "{d} - 2"),
    "2*{i}": ("0", "({d} + 1) / 2"),
    "2*{i} + 1": ("0", "({d}) / 2"),
    "4 - {i}": ("5 - ({d})", "5"),
}
ASSIGNMENTS = ("+=!", "*=!", "min=!", "max=!")


@dataclass(frozen=True)
class Dim:
    """A half-open range, as text."""

    low: str
    high: str


@dataclass(frozen=True)
class Made:
    """A tensor; ``bound`` is what its floats stay below in magnitude."""

    name: str
    dtype: str
    dims: tuple[Dim, ...]
    bound: float = 4.0
    is_input: bool = False


@dataclass(frozen=True)
class Index:
    """A variable.

    Attributes:
        subscript: What reads a dimension of size ``holds`` with it, if anything can.
        driver: The read that bounds it; else it has a range.
        named: A let for the end of its range.
    """

    name: str
    dim: Dim
    subscript: str = ""
    holds: str = ""
    driver: str = ""
    named: str = ""

    @property
    def clause(self) -> str:
        end = self.named or self.dim.high
        return "" if self.driver else f"{self.name} in {self.dim.low}:{end}"


@dataclass(frozen=True)
class Program:
    """A text and what must be true of it.

    Attributes:
        gathers: For each input that holds positions, the size they index.
        dims: The bounds of every returned tensor.
    """

    text: str
    gathers: dict[str, str]
    dims: dict[str, tuple[Dim, ...]]


class Draft(Values):
    """A program while it grows."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.tensors: dict[str, Made] = {}
        self.lines: list[str] = []
        self.gathers: dict[str, str] = {}
        self.declared: set[str] = set()
        self.kept: set[str] = set()
        self.indices: list[Index] = []
        self.hidden = ""

    # ------------------------------------------------------------------ reads

    def input(self, kind: str, dims: Sequence[str]) -> Made:
        pool = {"float": FLOATS, "int": INTEGERS, "bool": ("bool",)}[kind]
        name = f"X{len(self.tensors)}"
        shape = tuple(Dim("0", d) for d in dims)
        self.tensors[name] = Made(name, self.among(pool), shape, is_input=True)
        return self.tensors[name]

    def index(self) -> str | None:
        names = [i.name for i in self.indices] + ["N"] * bool(self.tensors)
        return self.among(names) if names else None

    def read(self, kind: str, *, exact: bool = False) -> Float:
        usable = [i for i in self.indices if i.holds]
        if usable and self.chance(25):
            return self.special(kind, usable)
        chosen = [i for i in self.shuffled(usable) if self.chance(65)][:3]
        if not exact and self.chance(60):
            known = [
                (made, subscripts)
                for made in self.tensors.values()
                if KINDS[made.dtype] == kind and made.name != self.hidden
                if (subscripts := self.subscripts(made)) is not None
            ]
            if known:
                made, subscripts = self.among(known)
                return self.element(made, subscripts)
        alike = [
            made
            for made in self.tensors.values()
            if made.is_input and KINDS[made.dtype] == kind and made.name not in self.gathers
            if [d.high for d in made.dims] == [i.holds for i in chosen]
        ]
        made = self.among(alike) if alike else self.input(kind, [i.holds for i in chosen])
        return self.element(made, [i.subscript for i in chosen])

    def subscripts(self, made: Made) -> list[str] | None:
        """How the elements of a written tensor are read, each dimension by its own index."""
        if made.is_input:
            return None
        free, found = list(self.indices), []
        for dim in made.dims:
            fitting = [i for i in free if i.dim == dim]
            if not fitting:
                return None
            found.append(self.among(fitting).name)
            free = [i for i in free if i.name != found[-1]]
        return found

    def element(self, made: Made, subscripts: Sequence[str]) -> Float:
        text = f"({', '.join(subscripts)})" if subscripts else self.among(("", "()"))
        return Float(f"{made.name}{text}", made.bound)

    def special(self, kind: str, usable: list[Index]) -> Float:
        """A read that is guarded, clamped, split, gathered or at a place of its own."""
        i = self.among(usable)
        if self.chance(20) and (read := self.moved(kind)):
            return read
        match self.count(0, 8):
            case 0:
                size = self.among(AFFINE)
                off = self.count(-2, 2)
                read = self.element(self.input(kind, [size]), [f"{i.name} - {off}"])
                guard = f"{i.name} - {off} >= 0 && {i.name} - {off} < {size}"
                return Float(f"({guard} ? {read.text} : {self.default(kind)})", 4)
            case 1:
                size = self.among(("N", "M", "3"))
                where = f"max(min({i.name} - 1, {size} - 1), 0)"
                return self.element(self.input(kind, [size]), [where])
            case 2:
                return self.element(self.input(kind, ["3"]), [f"({i.name} + 1) % 3"])
            case 3:
                return self.element(self.input(kind, [i.holds]), [f"({i.subscript}) / 2"])
            case 4:
                place = f"{i.name} > {i.dim.low} ? {i.subscript} : 0"
                return self.element(self.input(kind, [i.holds]), [place])
            case 5:
                rest = self.among(usable)
                made = self.input(kind, ["3", rest.holds])
                return self.element(made, [str(self.count(0, 2)), rest.subscript])
            case 6:
                read = self.element(self.input(kind, [i.holds]), [i.subscript])
                return Float(f"({self.condition(0)} ? {read.text} : {self.default(kind)})", 4)
        positions = replace(self.input("int", [i.holds]), dtype=self.among(("int32", "int64")))
        size = self.among(("5", "5", "N"))
        self.tensors[positions.name] = positions
        self.gathers[positions.name] = size
        place = f"{positions.name}({i.subscript})"
        read = self.element(self.input(kind, [size]), [place])
        if self.chance(30):
            guard = self.among((f"{place} >= 0", f"{place} < {size}", self.condition(0)))
            return Float(f"({guard} ? {read.text} : {self.default(kind)})", 4)
        return read

    def moved(self, kind: str) -> Float | None:
        """A written tensor at another place, where it has one."""
        known = [
            (made, subscripts)
            for made in self.tensors.values()
            if KINDS[made.dtype] == kind and made.dims and made.name != self.hidden
            if (subscripts := self.subscripts(made))
        ]
        if not known:
            return None
        made, subscripts = self.among(known)
        at, off = self.count(0, len(subscripts) - 1), self.among((-1, 1, 2))
        dim, place = made.dims[at], f"{subscripts[at]} + {off}"
        subscripts[at] = place
        guard = f"{place} >= {dim.low} && {place} < {dim.high}"
        read = self.element(made, subscripts)
        return Float(f"({guard} ? {read.text} : {self.default(kind)})", made.bound)

    def default(self, kind: str) -> str:
        return {"float": "0.5", "int": "3", "bool": f"{self.index() or 1} < 2"}[kind]

    # ------------------------------------------------------------------ variables

    def variable(self, name: str) -> tuple[Index, str]:
        """A variable, and the read that bounds it if there is no range."""
        written = [d for t in self.tensors.values() if not t.is_input for d in t.dims]
        if written and self.chance(45):
            return self.over(name, self.among(written)), ""
        if self.chance(45):
            form, size = self.among((*["{i}"] * 4, *DRIVERS)), self.among(AFFINE)
            low, high = (end.format(d=size) for end in DRIVERS[form])
            subscript = form.format(i=name)
            more = [subscript, "1"] if self.chance(20) else [subscript]
            made = self.input("float", [size, "3"][: len(more)])
            index = Index(name, Dim(low, high), subscript, size, self.element(made, more).text)
            return index, index.driver
        return self.over(
            name, Dim(self.among(("0",) * 5 + ("1", "-2")), self.among([*ENDS]))
        ), ""

    def over(self, name: str, dim: Dim) -> Index:
        """A variable with a range."""
        holds = ENDS.get(dim.high, "")
        if dim.low.lstrip("-").isdigit() and int(dim.low) < 0:
            shift = -int(dim.low)
            return Index(name, dim, f"{name} + {shift}", holds and f"{holds} + {shift}")
        return Index(name, dim, name if dim.low.isdigit() else "", holds)

    # ------------------------------------------------------------------ statements

    def statement(self) -> None:
        """A statement that defines a tensor, or changes one."""
        old = [t for t in self.tensors.values() if not t.is_input and t.dtype]
        self.indices, self.lets, self.truths, self.whole = [], {}, [], []
        if old and self.chance(35):
            self.change(self.among(old))
        elif self.chance(8):
            self.join()
        else:
            self.define()

    def define(self) -> None:
        name = f"T{len(self.tensors)}"
        found = [self.variable(v) for v in ("i", "j", "k")[: self.among((0, 1, 1, 2, 2, 3))]]
        kept = len(found)
        if self.chance(45):
            found += [self.variable(v) for v in ("r", "s")[: self.count(1, 2)]]
        self.indices = [index for index, _ in found]
        kind = self.among(("float", "float", "float", "int", "bool"))
        dtype = self.among({"float": FLOATS, "int": INTEGERS, "bool": ("bool",)}[kind])
        assign = self.assignment(kind, reduces=len(found) > kept)
        dims = tuple(index.dim for index, _ in found[:kept])
        self.tensors[name] = Made(name, dtype, dims)
        self.hidden = name
        drivers = [driver for _, driver in found if driver]
        bound = self.write(name, found[:kept], assign, drivers)
        self.tensors[name] = replace(self.tensors[name], bound=bound)
        fits = all(d.low == "0" and d.high in (*AFFINE, *ENDS) for d in dims)
        fits = fits and all(ENDS.get(d.high, d.high) == d.high for d in dims)
        if fits and self.chance(50):
            self.declared.add(name)
            if assign != "=" and self.chance(25):  # starts from the caller's elements
                self.lines[-1] = self.lines[-1].replace(f" {assign} ", f" {assign[:-1]} ", 1)
                self.kept.add(name)
                if self.chance(30):  # and shows them before that
                    self.show_old(name)

    def show_old(self, name: str) -> None:
        """Have a statement before the last one read what an output holds at first."""
        made = self.tensors[name]
        shown = f"T{len(self.tensors)}"
        indices = ", ".join(("i", "j", "k")[: len(made.dims)])
        at = f"({indices})" if indices else ""
        self.lines.insert(-1, f"{shown}{at} = {name}{at}")
        self.tensors[shown] = replace(made, name=shown)
        self.kept.add(shown)

    def join(self) -> None:
        """A returned tensor whose first and last part are written apart."""
        name = f"T{len(self.tensors)}"
        kind = self.among(("float", "int", "bool"))
        pool = {"float": FLOATS, "int": INTEGERS, "bool": ("bool",)}[kind]
        size, rest = self.among(("N", "M", "3")), self.among(("N", "M", "4"))
        along, across = (
            Dim("0", f"{size} + {rest}"),
            self.over("j", Dim("0", self.among(AFFINE))),
        )
        left = [across] if self.chance(60) else []
        made = Made(name, self.among(pool), (along, *(i.dim for i in left)))
        self.tensors[name] = made
        self.declared.add(name)
        self.kept.add(name)
        self.hidden = name
        bounds = []
        for part in (Dim("0", size), Dim(size, along.high)):
            self.lets, self.truths, self.whole = {}, [], []
            first = replace(self.over("i", part), holds=along.high, subscript="i")
            self.indices = [first, *left]
            bounds.append(self.write(name, [(i, "") for i in self.indices], "=", []))
        self.tensors[name] = replace(made, bound=max(bounds))

    def assignment(self, kind: str, *, reduces: bool) -> str:
        if not reduces and self.chance(85):
            return "="
        return self.among(ASSIGNMENTS[2:] if kind == "bool" else ASSIGNMENTS)

    def change(self, made: Made) -> None:
        """Write a tensor again, or a part of it."""
        names = ["i", "j", "k"][: len(made.dims)]
        found = [(self.over(v, d), "") for v, d in zip(names, made.dims, strict=True)]
        if found and self.chance(30):
            at = self.count(0, len(found) - 1)
            dim = made.dims[at]
            part = self.among(
                (Dim(f"{dim.low} + 1", dim.high), Dim(dim.low, f"{dim.high} - 1"))
            )
            found[at] = Index(names[at], part), ""
        kept = len(found)
        if self.chance(30):
            found += [self.variable("r")]
        self.indices = [index for index, _ in found]
        kind = KINDS[made.dtype]
        assign = self.assignment(kind, reduces=len(found) > kept)
        if assign != "=" and self.chance(60):
            assign = assign[:-1]
        self.hidden = made.name if assign != "=" or self.chance(50) else ""
        drivers = [driver for _, driver in found if driver]
        bound = self.write(made.name, found[:kept], assign, drivers)
        self.tensors[made.name] = replace(made, bound=made.bound + bound)

    def write(
        self,
        name: str,
        left: Sequence[tuple[Index, str]],
        assign: str,
        drivers: list[str],
    ) -> float:
        """Add the line of a statement; the bound of its floats."""
        dtype = self.tensors[name].dtype
        kind = KINDS[dtype]
        lets = self.named()
        clauses = [i.clause for i in self.indices if i.clause]
        lets += self.some_lets()
        in_value = [
            d for d in drivers if kind == "float" and assign != "*=!" and self.chance(60)
        ]
        clauses += [f"exists {d}" for d in drivers if d not in in_value]
        bound = 1.0
        match kind:
            case "float":
                value = self.scaled(self.count(0, 3))
                text, bound = value.text, value.bound
                if "*" in assign:
                    text, bound = f"1 + 0.0078125 * tanh({text})", 128.0
                for driver in in_value:
                    text, bound = f"{text} + {driver}", bound + 4
                if "+" in assign:
                    bound *= 1024
            case "int":
                text = self.integer(self.count(0, 2))
            case _:
                text = self.condition(self.count(0, 2))
        if kind != "bool":
            text = f"{dtype}({text})"
        if self.chance(3):
            text += " <=> other(N, 3)"
        clauses = self.shuffled([*clauses, *lets])
        order = iter(lets)  # each after those it uses
        clauses = [next(order) if clause in lets else clause for clause in clauses]
        where = f" where {', '.join(clauses)}" if clauses else ""
        target = f"{name}({', '.join(i.name for i, _ in left)})" if left else name
        self.lines.append(f"{target} {assign} {text}{where}")
        return bound

    def some_lets(self) -> list[str]:
        """Values with names of their own."""
        lines = []
        for name in ("t", "u", "v")[: self.among((0, 0, 0, 1, 2, 3))]:
            match self.count(0, 4):
                case 0:
                    lines.append(f"{name} = {self.condition(1)}")
                    self.truths.append(name)
                case 1:
                    lines.append(f"{name} = {self.integer(1)}")
                    self.whole.append(name)
                case _:
                    value = self.scaled(1)
                    lines.append(f"{name} = {value.text}")
                    self.lets[name] = value
        return lines

    def named(self) -> list[str]:
        """Names for the ends of some ranges, and for some subscripts."""
        lines = []
        for position, index in enumerate(self.indices):
            if not index.driver and self.chance(8):
                lines.append(f"end_{index.name} = {index.dim.high}")
                self.indices[position] = replace(index, named=f"end_{index.name}")
            elif index.holds and index.subscript and self.chance(8):
                lines.append(f"at_{index.name} = {index.subscript}")
                self.indices[position] = replace(index, subscript=f"at_{index.name}")
        return lines


def random_program(rng: random.Random, statements: int = 5) -> Program:
    """A program of that many statements at most."""
    draft = Draft(rng)
    for _ in range(draft.count(1, statements)):
        draft.statement()
    written = [t for t in draft.tensors.values() if not t.is_input]
    returned = [
        t for t in written if t.name in draft.kept or t == written[-1] or draft.chance(50)
    ]
    params = ", ".join(_declared(t) for t in draft.tensors.values() if t.is_input)
    returns = ", ".join(_declared(t) if t.name in draft.declared else t.name for t in returned)
    lines = "".join(f"  {line}\n" for line in draft.lines)
    params = f"float(N) A, float(M) B{', ' * bool(params)}{params}"
    text = f"def f({params}) -> ({returns}) {{\n{lines}}}\n"
    return Program(text, draft.gathers, {t.name: t.dims for t in returned})


def _declared(made: Made) -> str:
    shape = f"({', '.join(d.high for d in made.dims)})" if made.dims else ""
    return f"{made.dtype}{shape} {made.name}"
