"""The C functions of a region over its sizes: derive them, check them, shape the outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tcfuse.ort.c_text import declare, guarded, quote
from tcfuse.targets.base import Interface
from tcfuse.targets.geometry import MOST_SCRATCH
from tcfuse.targets.places import Places, dimensions
from tcfuse.types import Size, size_names

UNKNOWN_BIT = 63


def derive(k: int, interface: Interface) -> Iterator[str]:
    """The function that computes derived sizes from the ones before them; none, no function."""
    if not interface.derived:
        return
    expressions = dict(interface.derived)
    used = size_names(expressions.values())
    yield f"static void derive_{k}(int64_t *tcf_sizes) {{"
    yield from declare(interface.sizes, [name for name in used if name not in expressions])
    for name, expression in expressions.items():
        place = f"tcf_sizes[{interface.sizes.index(name)}]"
        local = f"const int64_t {name} = " if name in used else ""
        yield f"  {local}{place} = {guarded(expression)};"
    yield "}"


def agree(k: int, interface: Interface, scratch: Iterable[str], places: Places) -> str:
    """The function that checks what the inputs' dimensions must be.

    Args:
        k: The region's number.
        interface: Its signature.
        scratch: Bytes of temporaries, which 64 bits must hold.
        places: Where its sizes come from.
    """
    checks = (*interface.checks, *_memory_checks(interface, scratch))
    lines: list[str] = []
    expressions: list[Size] = [condition for condition, _ in checks]
    for position, (_, _, size) in enumerate(dimensions(interface.inputs)):
        if isinstance(size, str) and places.read.get(size) == position:
            continue
        where = quote(places.dimensions[position])
        meaning = places.rule(size)
        rule = "NULL" if meaning is None else quote(meaning)
        lines.append(f"  TCF_AGREE({position}, {guarded(size)}, {where}, {rule})")
        expressions.append(size)
    for condition, sentence in checks:
        lines.append(f"  TCF_REQUIRE({guarded(condition)}, {quote(sentence)})")
    return "\n".join(
        (
            f"static int agree_{k}(const int64_t *tcf_dims, const int64_t *tcf_sizes,",
            "                   TcfComplaint *tcf_complaint) {",
            *declare(interface.sizes, size_names(expressions)),
            *lines,
            "  return 1;",
            "}",
        )
    )


def _memory_checks(interface: Interface, scratch: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Conditions under which 64 bits hold the bytes of scratch, where sizes are multiplied."""
    names = set(interface.sizes)

    def inexact(match: re.Match[str]) -> str:
        return f"(double){match[0]}" if match[0] in names else match[0]

    for text in scratch:
        if re.search(r"[A-Za-z_]\w* \* [A-Za-z_(]", text):
            bytes_needed = re.sub(r"[A-Za-z_]\w*", inexact, text)
            sentence = "its temporaries take more memory than there is"
            yield f"{bytes_needed} < {MOST_SCRATCH}", sentence


def shape(k: int, interface: Interface, sizes: Sequence[Size]) -> str:
    """The function that computes the dimensions of all outputs."""
    return "\n".join(
        (
            f"static void shape_{k}(const int64_t *tcf_sizes, int64_t *tcf_dims) {{",
            *declare(interface.sizes, size_names(sizes)),
            *(f"  tcf_dims[{d}] = {guarded(size)};" for d, size in enumerate(sizes)),
            "}",
        )
    )


def needs(interface: Interface, sizes: Iterable[Size]) -> Iterator[str]:
    """For each size, the set of sizes that must be known to compute it, as bits."""
    bits: dict[str, int] = {}
    for k, name in enumerate(interface.sizes):
        bits[name] = 1 << min(k, UNKNOWN_BIT)
    for name, expression in interface.derived:
        bits[name] = _union(bits, expression)
    return (f"0x{_union(bits, size):x}u" for size in sizes)


def _union(bits: dict[str, int], size: Size) -> int:
    found = 0
    for name in size_names([size]):
        found |= bits.get(name, 0)
    return found
