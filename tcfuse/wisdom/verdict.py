"""What measuring a whole model showed, for runs that are to decide alike.

Two runs never measure quite the same, so what the gate decides in one cache it may not decide
in another.  A verdict is what it decided: which kernels of a model stay, or which form of it,
with the numbers.  It holds for the same kernels (their names have a digest of their text), the
same model, device and versions.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tcfuse.errors import InputError
from tcfuse.store import Store, key_of
from tcfuse.wisdom.fields import among, line, number, object_of, versions_of

GATE, FORM = "gate", "form"
KIND = "verdicts"
MOST_KERNELS = 20_000
_RATIO = ("value", "spread", "before_us", "after_us")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided about one model.

    Attributes:
        kind: ``gate``: which kernels stay; ``form``: whether the blocked form does.
        subject: A digest of what was measured: the model's structure and shapes.
        kernels: Names of the kernels that were measured in it, sorted.
        device: What it was measured on.
        versions: Of tcfuse, the compiler and ONNX Runtime.
        record: What was decided, as the cache has it.
    """

    kind: str
    subject: str
    kernels: tuple[str, ...]
    device: str
    versions: Mapping[str, str]
    record: Mapping[str, Any]

    @property
    def topic(self) -> str:
        """Names what was decided about, on whatever device."""
        return key_of(self.kind, self.subject, self.kernels)

    @property
    def key(self) -> str:
        """Names what there is one verdict of."""
        return key_of(self.topic, self.device, sorted(self.versions.items()))

    @property
    def rank(self) -> tuple[Any, ...]:
        """A fixed order; of two verdicts on the same, the first is kept."""
        says = json.dumps(self.record, sort_keys=True)
        where = (self.kind, self.device, self.kernels, self.subject)
        return (*where, sorted(self.versions.items()), says)

    def to_record(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        record = json.loads(json.dumps(asdict(self), sort_keys=True))
        made: dict[str, Any] = {name: record[name] for name in self.__dataclass_fields__}
        return made


def verdict_of(record: object) -> Verdict:
    """The verdict that ``Verdict.to_record`` wrote.

    Raises:
        InputError: It is none.
    """
    fields = object_of(record, "verdict", Verdict.__dataclass_fields__)
    names = fields["kernels"]
    if not isinstance(names, list) or len(names) > MOST_KERNELS:
        raise InputError("kernels is no list of names")
    kernels = tuple(line(name, "a kernel") for name in names)
    kind = among(fields["kind"], "kind", (GATE, FORM))
    check = _gate if kind == GATE else _form
    return Verdict(
        kind,
        line(fields["subject"], "subject"),
        kernels,
        line(fields["device"], "device"),
        versions_of(fields["versions"]),
        check(fields["record"], frozenset(kernels)),
    )


def _gate(record: object, kernels: frozenset[str]) -> dict[str, Any]:
    """A gate's result, which decides about each kernel."""
    fields = object_of(record, "record", ("kept", "dropped", "alone", "whole", "note"))
    kept, dropped, alone = fields["kept"], fields["dropped"], fields["alone"]
    if not isinstance(kept, list) or not isinstance(dropped, dict):
        raise InputError("kept is no list, or dropped is no object")
    for name in kept:
        line(name, "a kernel that is kept")
    if {*kept, *dropped} != kernels or kernels & {*kept} & {*dropped}:
        raise InputError("kept and dropped are not the kernels")
    if not isinstance(alone, dict) or not alone.keys() <= kernels:
        raise InputError("alone is no object of kernels")
    for reason in (*dropped.values(), fields["note"]):
        line(reason, "a reason")
    for ratio in alone.values():
        _ratio(ratio)
    if fields["whole"] is not None:
        _ratio(fields["whole"])
    return fields


def _form(record: object, kernels: frozenset[str]) -> dict[str, Any]:
    """Which form of a model is faster."""
    del kernels
    fields = object_of(record, "record", ("problem", "gain", "whole"))
    problem = line(fields["problem"], "problem")
    for name in ("gain", "whole"):
        if fields[name] is not None:
            _ratio(fields[name])
        elif not problem:
            raise InputError(f"there is neither a problem nor {name}")
    return fields


def _ratio(record: object) -> None:
    fields = object_of(record, "a ratio", _RATIO)
    for name, value in fields.items():
        number(value, name, 1e15, zero=name == "spread")


@dataclass(slots=True)
class Verdicts:
    """Verdicts that a run may look up: those of a file, then imported ones.

    Attributes:
        given: Those of the file.
        imported: Whether the others are asked.
    """

    given: tuple[Verdict, ...] = ()
    imported: bool = True
    stale: int = 0  # asked for, and there for other devices or versions alone

    def find(self, like: Verdict, store: Store) -> Mapping[str, Any] | None:
        """What was decided about the subject of ``like``, on its device, in its versions."""
        for verdict in self.given:
            if verdict.key == like.key:
                return verdict.record
        record = store.get(KIND, like.key) if self.imported else None
        try:
            if record is not None:
                return verdict_of(record).record
        except InputError:
            return None
        self.stale += any(verdict.topic == like.topic for verdict in self.given)
        return None

    def notes(self) -> list[str]:
        """What a user should know."""
        if not self.stale:
            return []
        where = "another device or other versions"
        return [f"the verdict of wisdom about this model is for {where}, and not used"]


def measured(store: Store) -> Iterator[Verdict]:
    """Every verdict that the cache has: those of runs, and imported ones."""
    for kind in ("gates", "forms", KIND):
        for path in (store.root / kind).rglob("*.json"):
            with contextlib.suppress(InputError):
                yield verdict_of(store.get(kind, path.stem))


def keep(store: Store, verdicts: Iterable[Verdict]) -> None:
    """Put imported verdicts where runs look them up."""
    for verdict in verdicts:
        store.put(KIND, verdict.key, verdict.to_record())
