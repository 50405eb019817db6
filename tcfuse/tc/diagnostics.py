"""Every diagnostic of the language: its code, what it is called, how severe it is.

The first 42 are those of the 2019 language, in its order; what it refused and this one allows
keeps its code, which says what took its place.  Those from ``TC43`` on are ours.

Source: the messages of the reference implementation of Tensor Comprehensions, by their gist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tcfuse.errors import Span, TcError, render

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A kind of finding.

    Attributes:
        code: ``TC01`` for example.
        severity: ``error``, ``warning``, ``note``, or ``never`` for what is allowed now.
        title: What it is about.
        remark: What to know about it: the way out, or what took its place.
    """

    code: str
    severity: Literal["error", "warning", "note", "never"]
    title: str
    remark: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic at one place; prints as compilers print theirs."""

    code: str
    severity: Severity
    message: str
    span: Span | None = field(default=None, compare=False)
    hint: str | None = None

    @classmethod
    def of(cls, error: TcError) -> Finding:
        """What ``error`` says."""
        return cls(error.code, "error", error.message, error.span, error.hint)

    def __str__(self) -> str:
        return render(self.severity, self.code, self.message, self.span, self.hint)


def reference() -> str:
    """The page ``docs/diagnostics.md``."""
    lines = [
        "# Diagnostics",
        "",
        "What `tcfuse check`, building and calling say about a definition, each with its place",
        "and a way out. Those marked `never` are errors of the 2019 language that this one has",
        "no need of.",
        "",
        "| code | severity | what | remark |",
        "| --- | --- | --- | --- |",
    ]
    for row in DIAGNOSTICS.values():
        remark = row.remark.replace("|", "\\|")
        lines.append(f"| {row.code} | {row.severity} | {row.title} | {remark} |")
    return "\n".join([*lines, ""])


DIAGNOSTICS: Mapping[str, Diagnostic] = {
    row.code: row
    for row in (
        Diagnostic(
            "TC01",
            "error",
            "unknown character",
            "no word of the language starts with it",
        ),
        Diagnostic(
            "TC02",
            "error",
            "unexpected word",
            "the message says what was expected in its place",
        ),
        Diagnostic(
            "TC03",
            "error",
            "no assignment",
            "a statement has one of `= += *= min= max= +=! *=! min=! max=!`",
        ),
        Diagnostic("TC04", "error", "unknown type", "parameters have a type: `float(N) X`"),
        Diagnostic(
            "TC05",
            "error",
            "malformed size",
            "a size is a number, a name, or an affine expression of names",
        ),
        Diagnostic(
            "TC06",
            "never",
            "half precision",
            "`float16`, `half` and `bfloat16` are types; arithmetic on them is done in `float`",
        ),
        Diagnostic(
            "TC07",
            "error",
            "no common type",
            "`bool` does not mix with numbers: cast it",
        ),
        Diagnostic(
            "TC08",
            "error",
            "scalar used as a tensor",
            "indices, sizes and lets take no subscripts",
        ),
        Diagnostic(
            "TC09",
            "error",
            "not an integer",
            "subscripts, bounds of ranges and the arguments of bit operations are "
            "integers: cast them",
        ),
        Diagnostic(
            "TC10",
            "error",
            "not a boolean",
            "`&& || !` and the condition of `? :` want one: compare with zero; "
            "arithmetic wants a number",
        ),
        Diagnostic(
            "TC11",
            "error",
            "tensor in a range",
            "a range depends on sizes only, not on elements and not on other indices",
        ),
        Diagnostic(
            "TC12",
            "error",
            "wrong number of arguments",
            "of a built-in function, `min`, `max` or a cast",
        ),
        Diagnostic("TC13", "error", "wrong number of subscripts", "one for each dimension"),
        Diagnostic("TC14", "error", "tensor used as a scalar", "it needs subscripts"),
        Diagnostic(
            "TC15",
            "never",
            "unsupported construct",
            "everything that parses is checked",
        ),
        Diagnostic("TC16", "error", "input written", "write to a new name and return that"),
        Diagnostic("TC17", "error", "narrowing assignment", "cast the value"),
        Diagnostic(
            "TC18",
            "error",
            "wrong rank of an assignment",
            "the left-hand side has as many indices as the tensor has dimensions",
        ),
        Diagnostic(
            "TC19",
            "warning",
            "reduction without initialisation",
            "the result starts from what the caller's buffer holds; the `!` form starts"
            " from the neutral element. An error for a temporary, which has no buffer",
        ),
        Diagnostic(
            "TC20",
            "error",
            "reduction variable without a reduction",
            "a variable on the right-hand side alone needs one of the reduction assignments",
        ),
        Diagnostic(
            "TC21",
            "warning",
            "unused temporary",
            "temporaries are allowed; this one is neither returned nor read",
        ),
        Diagnostic("TC22", "error", "built-in redefined", "choose another name"),
        Diagnostic(
            "TC23",
            "error",
            "name defined twice",
            "two parameters, lets, ranges, indices or definitions of one name, or one "
            "name for two things",
        ),
        Diagnostic(
            "TC24",
            "error",
            "undefined name",
            "also a result that is never written, and a value that is read before it is"
            " written",
        ),
        Diagnostic(
            "TC25",
            "never",
            "internal: unexpected node",
            "syntax trees have one type a node, and `canonical` takes unchecked "
            "definitions too",
        ),
        Diagnostic(
            "TC26",
            "error",
            "empty range",
            "the end of a range lies before its start. A warning when it is equal to it",
        ),
        Diagnostic(
            "TC27",
            "error",
            "ranges cannot be inferred",
            "the conditions known do not bound a variable: give it a range with `where`",
        ),
        Diagnostic(
            "TC28",
            "error",
            "index without a range",
            "nothing on the right-hand side uses this index of the left-hand side",
        ),
        Diagnostic(
            "TC29",
            "error",
            "reduction variable without a range",
            "nothing bounds it: give it a range with `where`",
        ),
        Diagnostic(
            "TC30",
            "note",
            "precondition",
            "what could not be proved is checked at run time. An error when it cannot "
            "hold, or does not hold for the sizes at hand",
        ),
        Diagnostic(
            "TC31",
            "error",
            "reduction not defined on the type",
            "sums and products of `bool`: cast the value",
        ),
        Diagnostic("TC32", "error", "wrong inputs", "of a call"),
        Diagnostic("TC33", "error", "wrong element type", "of an array given to a call"),
        Diagnostic(
            "TC34",
            "error",
            "wrong number of dimensions",
            "of an array given to a call",
        ),
        Diagnostic(
            "TC35",
            "error",
            "unusable strides",
            "elements that overlap, or an order in memory that the callee cannot use",
        ),
        Diagnostic(
            "TC36",
            "error",
            "sizes disagree",
            "two dimensions of one size name have different lengths",
        ),
        Diagnostic(
            "TC37",
            "error",
            "wrong constant size",
            "a dimension that is declared as a number has another length",
        ),
        Diagnostic(
            "TC38",
            "error",
            "size without a value",
            "sizes need not be constants, but the shapes of the inputs have to give them, or "
            "the call. A warning when the definition has no such input",
        ),
        Diagnostic(
            "TC39",
            "error",
            "no such definition",
            "the file has no definition of that name",
        ),
        Diagnostic("TC40", "error", "wrong output array", "its rank, sizes or element type"),
        Diagnostic("TC41", "error", "too large for a kernel", "split the definition"),
        Diagnostic(
            "TC42",
            "error",
            "mapping is not possible",
            "the options cannot be used for this kernel",
        ),
        Diagnostic(
            "TC43",
            "error",
            "reset and read",
            "a statement reads the tensor that it has just reset",
        ),
        Diagnostic(
            "TC44",
            "error",
            "size not affine",
            "the compiler wants explicit ranges here",
        ),
        Diagnostic(
            "TC45",
            "error",
            "written outside",
            "a statement writes beyond the shape of its tensor",
        ),
        Diagnostic("TC46", "error", "division by zero", "of integers"),
        Diagnostic(
            "TC47",
            "error",
            "read out of bounds",
            "an element that does not exist is read for the data at hand",
        ),
    )
}
