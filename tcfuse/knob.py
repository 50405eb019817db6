"""One tunable option: a dataclass field that says all there is to know about it.

From the field follow its check, its flag, its JSON, its part of every cache key, its row in the
documentation and its place in the search space; nothing about a knob is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar, cast

from tcfuse.errors import OptionError

T = TypeVar("T")

NEEDS = ("", "cpu", "reductions", "sizes")


def always(_: Any) -> bool:
    """What a knob that matters beside all others says."""
    return True


@dataclass(frozen=True, slots=True)
class Knob:
    """What a field declares.

    Attributes:
        default: Value when nobody chooses; its type is the knob's.
        choices: What a tuner tries.
        unit: What the number counts ("iterations", "operations"), "flag" or "name".
        doc: One line, shown in help texts.
        legal: What the value may be, in words.
        accepts: Whether a value of the right type may be had.
        tuned: Whether a tuner tries it: no matter of speed, or the user's to say, otherwise.
        per_loop: A tuple with a number for each loop, which a tuner makes of the extents; it
            takes the numbers in ``choices`` where those are not known.
        needs: What there must be for the knob to matter: ``reductions``, ``sizes`` (names), the
            target ``cpu``, or nothing in particular.
        matters: Whether the knob changes anything beside these other options.
    """

    default: Any
    choices: tuple[Any, ...]
    unit: str
    doc: str
    legal: str
    accepts: Callable[[Any], bool]
    tuned: bool = True
    per_loop: bool = False
    needs: str = ""
    matters: Callable[[Any], bool] = always

    def allows(self, value: object) -> bool:
        """Whether ``value`` has the knob's type and is legal."""
        return type(value) is type(self.default) and self.accepts(value)

    @property
    def tried(self) -> str:
        """What a tuner tries, as a table shows it."""
        if not self.tuned:
            return "no other"
        if self.per_loop:
            return "extents of the loops, halved, and powers of two"
        return "; ".join(self.shown(choice) for choice in self.choices)

    def parsed(self, text: str) -> Any:
        """The value that ``text`` writes on a command line.

        Raises:
            ValueError: It does not write one.
        """
        match self.default:
            case bool():
                return {"true": True, "false": False}[text.lower()]
            case int():
                return int(text)
            case tuple():
                return tuple(int(part) for part in text.split(",") if part.strip())
            case _:
                return text

    def shown(self, value: Any) -> str:
        """``value`` as a command line writes it."""
        match value:
            case bool():
                return str(value).lower()
            case tuple():
                return ",".join(map(str, value)) or "none"
            case _:
                return str(value)


def knob(
    default: T,
    *,
    choices: tuple[T, ...],
    unit: str,
    doc: str,
    legal: str | None = None,
    accepts: Callable[[T], bool] | None = None,
    tuned: bool = True,
    per_loop: bool = False,
    needs: str = "",
    matters: Callable[[Any], bool] = always,
) -> T:
    """Declare a tunable option.

    Args:
        default: Value when nobody chooses.
        choices: What a tuner tries; must contain ``default``.
        unit: What the number counts ("iterations", "operations"), "flag" or "name".
        doc: One line, shown in help texts.
        legal: What the value may be, when that is more than the choices.
        accepts: Whether a value may be had, when that is more than the choices.
        tuned: Whether a tuner tries it.
        per_loop: A tuple with a number for each loop.
        needs: What there must be for it to matter, one of ``NEEDS``.
        matters: Whether it changes anything beside the others of its class.
    """
    assert needs in NEEDS, f"a definition has no {needs!r} to need"
    assert default in choices, f"default {default!r} is not among {choices!r}"
    assert (legal is None) == (accepts is None), "a rule has a sentence and a check"
    made = Knob(
        default,
        choices,
        unit,
        doc,
        legal or ", ".join(map(str, choices)),
        accepts or (lambda value: value in choices),
        tuned,
        per_loop,
        needs,
        matters,
    )
    return field(default=default, metadata={"knob": made})


def knob_of(f: Field[Any]) -> Knob:
    """What a field declares."""
    return cast("Knob", f.metadata["knob"])


def knobs_of(options: type) -> Iterator[tuple[str, Knob]]:
    """Every knob of a class of options with its name."""
    for f in fields(options):
        yield f.name, knob_of(f)


def check_knobs(options: Any) -> None:
    """Raise ``OptionError`` unless every value is legal."""
    for name, known in knobs_of(type(options)):
        value = getattr(options, name)
        if not known.allows(value):
            raise OptionError(f"{name} is {value!r}; it may be {known.legal}")


def flag_of(name: str, known: Knob) -> str:
    """How the command line writes a knob: ``--tile`` or ``--skewing/--no-skewing``."""
    dashed = name.replace("_", "-")
    return f"--{dashed}/--no-{dashed}" if isinstance(known.default, bool) else f"--{dashed}"


def table(options: type, prefix: str = "") -> str:
    """The knobs as a table in Markdown; their flags' names begin with ``prefix``."""
    lines = [
        "| flag | default | tried by the tuner | unit | meaning |",
        "|---|---|---|---|---|",
    ]
    for name, known in knobs_of(options):
        listed = known.tuned and known.legal == ", ".join(map(str, known.choices))
        extra = "" if listed else f" ({known.legal})"
        cells = (
            f"`{flag_of(prefix + name, known)}`",
            known.shown(known.default),
            known.tried + extra,
            known.unit,
            known.doc,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
