"""The lowest PTX version that a text needs, so that it loads with the oldest drivers.

A driver refuses a text whose ``.version`` is newer than itself, and NVRTC writes its own
version whatever the text uses.  The text is given the lowest version that knows its target and
every instruction form, directive, type and special register in it, as far as all of them are in
the tables below; a text with anything else keeps the version that it has.

Source: the PTX ISA reference, "PTX ISA Notes" of each instruction and the release notes.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from tcfuse.targets.ptx import Ptx, Statement

Version = tuple[int, int]

OLDEST: Version = (6, 3)  # the first that knows the oldest architecture below

TARGETS: dict[int, Version] = {
    75: (6, 3),
    80: (7, 0),
    86: (7, 1),
    87: (7, 4),
    88: (9, 0),
    89: (7, 8),
    90: (7, 8),
    100: (8, 6),
    103: (8, 8),
    110: (9, 0),
    120: (8, 7),
    121: (8, 8),
}

_INT = r"[bus](?:8|16|32|64)"
_WORD = r"[us](?:16|32|64)"
_FLOAT = r"f(?:16|16x2|32|64)"
_BFLOAT = r"bf16(?:x2)?"
_NUMBER = r"(?:[us](?:8|16|32|64)|f16|f32|f64)"
_ROUND = r"(?:\.r[nzmp])?"
_FTZ = r"(?:\.ftz)?"
_SAT = r"(?:\.sat)?"
_SPACE = r"(?:\.(?:global|shared|local))?"
_ORDER = r"(?:\.volatile|\.(?:relaxed|acquire|release|acq_rel)\.(?:cta|gpu|sys))?"
_COMPARE = r"(?:eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan)"
_BOOLEAN = r"(?:\.(?:and|or|xor))?"
_SCALAR = rf"(?:{_INT}|f32|f64)"
_VECTOR = r"(?:v2\.(?:[bus](?:8|16|32|64)|f32|f64)|v4\.(?:[bus](?:8|16|32)|f32))"
_ATOM = rf"(?:atom|red){_ORDER}{_SPACE}"
_M16N8K8 = r"mma\.sync\.aligned\.m16n8k8\.row\.col"
_M16N8K16 = r"mma\.sync\.aligned\.m16n8k16\.row\.col"

# Every form of one line is as old as the version before it, or older.
FORMS: tuple[tuple[Version, str], ...] = (
    # integers
    (OLDEST, rf"(?:add|sub|min|max|div|rem|sad)\.{_WORD}|(?:add|sub)\.sat\.s32"),
    (OLDEST, rf"(?:abs|neg)\.s(?:16|32|64)|(?:mul|mad)\.(?:lo|hi|wide)\.{_WORD}"),
    (OLDEST, r"(?:mul24|mad24)\.(?:lo|hi)\.[us]32|(?:add|sub)c?(?:\.cc)?\.[us](?:32|64)"),
    (OLDEST, r"madc?\.(?:lo|hi)(?:\.cc)?\.[us](?:32|64)|dp[24]a\.(?:lo\.|hi\.)?[us]32\.[us]32"),
    (OLDEST, r"(?:popc|clz|brev)\.b(?:32|64)|bfind(?:\.shiftamt)?\.[us](?:32|64)"),
    (OLDEST, r"bfe\.[us](?:32|64)|bfi\.b(?:32|64)|prmt\.b32|lop3\.b32|fns\.b32"),
    (OLDEST, r"(?:and|or|xor|not|cnot)\.(?:pred|b16|b32|b64)|shl\.b(?:16|32|64)"),
    (OLDEST, r"shr\.[bus](?:16|32|64)|shf\.[lr]\.(?:wrap|clamp)\.b32"),
    # floating point
    (OLDEST, rf"(?:add|sub|mul){_ROUND}{_FTZ}{_SAT}\.(?:f32|f64)"),
    (OLDEST, rf"(?:add|sub|mul)(?:\.rn)?{_FTZ}{_SAT}\.f16(?:x2)?|(?:abs|neg){_FTZ}\.{_FLOAT}"),
    (OLDEST, rf"(?:fma|mad){_ROUND}{_FTZ}{_SAT}\.(?:f32|f64)|fma\.rn{_FTZ}{_SAT}\.f16(?:x2)?"),
    (OLDEST, rf"(?:min|max){_FTZ}\.(?:f32|f64)|copysign\.f(?:32|64)|testp\.\w+\.f(?:32|64)"),
    (OLDEST, rf"(?:div|rcp|sqrt)\.(?:approx|full|r[nzmp]){_FTZ}\.f(?:32|64)"),
    (OLDEST, rf"rsqrt\.approx{_FTZ}\.f(?:32|64)|(?:sin|cos|lg2|ex2)\.approx{_FTZ}\.f32"),
    ((7, 0), rf"(?:min|max){_FTZ}(?:\.NaN)?\.(?:f16|f16x2|f32)"),
    ((7, 0), rf"(?:min|max)(?:\.NaN)?\.{_BFLOAT}|(?:abs|neg)\.{_BFLOAT}"),
    ((7, 0), rf"fma\.rn(?:\.relu)?\.{_BFLOAT}|fma\.rn{_FTZ}\.relu\.f16(?:x2)?"),
    ((7, 0), r"(?:tanh|ex2)\.approx\.f16(?:x2)?|tanh\.approx\.f32"),
    ((7, 8), rf"(?:add|sub|mul)(?:\.rn)?\.{_BFLOAT}"),
    ((7, 8), rf"ex2\.approx\.ftz\.{_BFLOAT}|tanh\.approx\.{_BFLOAT}"),
    # comparisons and conversions
    (OLDEST, rf"setp\.{_COMPARE}{_BOOLEAN}{_FTZ}\.(?:{_INT}|{_FLOAT})"),
    (OLDEST, rf"set\.{_COMPARE}{_BOOLEAN}{_FTZ}\.[usf]32\.(?:[bus](?:16|32|64)|f32|f64)"),
    (OLDEST, r"selp\.(?:[bus](?:16|32|64)|f32|f64)|slct(?:\.ftz)?\.\w+\.(?:s32|f32)"),
    (OLDEST, rf"cvt{_SAT}\.[us](?:8|16|32|64)\.[us](?:8|16|32|64)"),
    (OLDEST, rf"cvt\.r[nzmp]i?{_FTZ}{_SAT}\.{_NUMBER}\.{_NUMBER}"),
    (OLDEST, rf"cvt{_FTZ}{_SAT}\.f(?:16|32|64)\.f(?:16|32|64)"),
    (OLDEST, r"cvta(?:\.to)?\.(?:global|shared|local|const)\.u64"),
    ((7, 0), r"cvt\.r[nz](?:\.relu)?\.(?:f16|bf16|f16x2|bf16x2)\.f32|cvt\.rna\.tf32\.f32"),
    ((7, 1), r"cvt\.f32\.bf16"),
    ((7, 8), rf"setp\.{_COMPARE}{_BOOLEAN}\.{_BFLOAT}"),
    # memory
    (OLDEST, rf"(?:ld|st){_ORDER}{_SPACE}\.(?:{_SCALAR}|{_VECTOR})"),
    (OLDEST, rf"ld\.global(?:\.(?:ca|cg|cs|lu|cv))?(?:\.nc)?\.(?:{_SCALAR}|{_VECTOR})"),
    (OLDEST, rf"st\.global\.(?:wb|cg|cs|wt)\.(?:{_SCALAR}|{_VECTOR})"),
    (OLDEST, rf"(?:ld|st)\.param\.(?:{_SCALAR}|{_VECTOR})|ld\.const\.(?:{_SCALAR}|{_VECTOR})"),
    (OLDEST, rf"{_ATOM}\.(?:add|min|max|inc|dec)\.(?:[us](?:32|64)|f32|f64)"),
    (OLDEST, rf"{_ATOM}\.(?:and|or|xor|exch)\.b(?:32|64)|{_ATOM}\.add\.noftz\.f16(?:x2)?"),
    (OLDEST, rf"{_ATOM}\.cas\.b(?:16|32|64)|prefetch\.global\.L[12]"),
    ((7, 0), r"cp\.async\.(?:c[ag]\.shared\.global|commit_group|wait_group|wait_all)"),
    ((7, 8), r"cp\.async\.c[ag]\.shared::cta\.global|(?:ld|st)\.shared::cta\.\w+"),
    # moves, threads and control
    (OLDEST, r"mov\.(?:pred|[bus](?:16|32|64)|f32|f64)"),
    (OLDEST, r"(?:shfl\.sync\.(?:up|down|bfly|idx)|match\.(?:any|all)\.sync)\.b(?:32|64)"),
    (OLDEST, r"vote\.sync\.(?:(?:any|all|uni)\.pred|ballot\.b32)|activemask\.b32"),
    (OLDEST, r"bar\.(?:sync|arrive)|bar\.warp\.sync|barrier\.(?:sync|arrive)(?:\.aligned)?"),
    (OLDEST, r"bar(?:rier)?\.red\.(?:popc\.u32|(?:and|or)\.pred)"),
    (OLDEST, r"membar\.(?:cta|gl|sys)|fence\.(?:sc|acq_rel)\.(?:cta|gpu|sys)"),
    (OLDEST, r"bra(?:\.uni)?|brx\.idx(?:\.uni)?|call(?:\.uni)?|ret(?:\.uni)?|exit|trap|brkpt"),
    ((7, 0), r"redux\.sync\.(?:add|min|max)\.[us]32|redux\.sync\.(?:and|or|xor)\.b32"),
    # matrices
    ((6, 5), r"ldmatrix\.sync\.aligned\.m8n8\.x[124](?:\.trans)?\.shared\.b16"),
    ((7, 8), r"ldmatrix\.sync\.aligned\.m8n8\.x[124](?:\.trans)?\.shared::cta\.b16"),
    ((6, 5), rf"{_M16N8K8}\.(?:f16\.f16\.f16\.f16|f32\.f16\.f16\.f32)"),
    ((7, 0), rf"{_M16N8K8}\.f32\.(?:bf16\.bf16|tf32\.tf32)\.f32"),
    ((7, 0), rf"{_M16N8K16}\.(?:f16\.f16\.f16\.f16|f32\.f16\.f16\.f32|f32\.bf16\.bf16\.f32)"),
    ((7, 0), r"mma\.sync\.aligned\.m16n8k4\.row\.col\.f32\.tf32\.tf32\.f32"),
    ((7, 0), r"mma\.sync\.aligned\.m8n8k4\.row\.col\.f64\.f64\.f64\.f64"),
    ((7, 0), r"mma\.sync\.aligned\.m16n8k(?:16|32)\.row\.col\.s32\.[us]8\.[us]8\.s32"),
)

_FORMS = tuple((version, re.compile(form)) for version, form in FORMS)
_WORDS = frozenset(
    {
        *(".version", ".target", ".address_size", ".file", ".loc", ".pragma"),
        *(
            ".visible",
            ".extern",
            ".weak",
            ".entry",
            ".func",
            ".param",
            ".reg",
            ".align",
            ".ptr",
        ),
        *(".local", ".shared", ".global", ".const", ".ptr", ".branchtargets", ".callprototype"),
        *(".maxntid", ".minnctapersm", ".reqntid", ".maxnreg", ".pred", ".v2", ".v4"),
        *(f".{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)),
        *(".f16", ".f16x2", ".f32", ".f64"),
    }
)
_SPECIAL = re.compile(
    r"%(?:n?tid|n?ctaid)\.[xyz]|%(?:n?warpid|laneid|n?smid|lanemask_(?:eq|lt|le|gt|ge))"
    r"|%clock(?:64|_hi)?|%globaltimer(?:_lo|_hi)?|%(?:total|dynamic)_smem_size"
)
_VERSION = re.compile(r"^\.version\s+(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Need:
    """What a text needs.

    Attributes:
        version: The lowest version that will do.
        unknown: What is in no table, for which the text keeps its own version; else empty.
    """

    version: Version
    unknown: str = ""


def needed(ptx: Ptx) -> Need:
    """The lowest version that a text needs."""
    own = _VERSION.search(ptx.text)
    assert own is not None, "a PTX text names its version"
    kept = (int(own[1]), int(own[2]))
    version = OLDEST
    registers = _declared(ptx)
    for statement in ptx.statements:
        found = _of(statement, registers)
        if found is None:
            unknown = f"{statement.opcode} {statement.operands}".split("\n")[0].strip()
            return Need(kept, unknown)
        version = max(version, found)
    return Need(min(version, kept))


def lowered(ptx: Ptx) -> str:
    """The same text with the lowest ``.version`` that will do."""
    major, minor = needed(ptx).version
    return _VERSION.sub(f".version {major}.{minor}", ptx.text, count=1)


def _of(statement: Statement, registers: re.Pattern[str]) -> Version | None:
    """The version that knows a statement; ``None`` when no table has it."""
    if statement.opcode.startswith("."):
        return _of_directive(statement)
    if any(
        not registers.fullmatch(name) and not _SPECIAL.fullmatch(name)
        for name in re.findall(r"%[A-Za-z_][\w.]*", statement.operands)
    ):
        return None
    if statement.opcode.startswith(("min.", "max.")) and statement.operands.count(",") != 2:
        return None  # of three values: newer than of two
    return _of_opcode(statement.opcode)


@functools.cache
def _of_opcode(opcode: str) -> Version | None:
    return next((version for version, form in _FORMS if form.fullmatch(opcode)), None)


def _of_directive(statement: Statement) -> Version | None:
    if statement.opcode == ".target":
        target = re.fullmatch(r"sm_(\d+)", statement.operands)
        return TARGETS.get(int(target[1])) if target else None
    if statement.opcode == ".pragma":
        return OLDEST if statement.operands == '"nounroll"' else None
    if statement.opcode in (".file", ".version"):  # names of files may hold anything
        return OLDEST
    words = re.findall(r"(?<![\w%$])\.[a-zA-Z]\w*", f"{statement.opcode} {statement.operands}")
    return OLDEST if _WORDS.issuperset(words) else None


def _declared(ptx: Ptx) -> re.Pattern[str]:
    """What the names of a text's own registers look like: ``%f<36>`` stands for 36 of them."""
    names = {"%SP", "%SPL"}
    for statement in ptx.statements:
        if statement.opcode == ".reg":
            for name, many in re.findall(r"(%[\w$]+)(<\d+>)?", statement.operands):
                names.add(re.escape(name) + (r"\d+" if many else ""))
    return re.compile("|".join(sorted(names)))
