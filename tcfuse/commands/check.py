"""``tcfuse check``: what there is to say about TC files, for people or for editors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcfuse.commands.progress import print_lines
from tcfuse.commands.sources import read_sources, shown
from tcfuse.tc.diagnostics import Finding
from tcfuse.tc.examine import examine


def run(paths: Sequence[Path], *, as_json: bool, notes: bool, strict: bool) -> int:
    """Print the findings; the exit status, which is 1 when there is an error."""
    found: list[tuple[str, Finding]] = []
    for path, text in read_sources(paths):
        name = shown(path)
        found += [(name, finding) for finding in examine(text, name)]
    if as_json:
        print_lines([json.dumps([record(name, finding) for name, finding in found], indent=1)])
    else:
        wanted = [f for _, f in found if notes or f.severity != "note"]
        print_lines([str(finding) for finding in wanted])
        print_lines([_summary([finding for _, finding in found], len(paths))])
    fatal = ("error", "warning") if strict else ("error",)
    return int(any(finding.severity in fatal for _, finding in found))


def record(name: str, finding: Finding) -> dict[str, Any]:
    """A finding as editors take it; lines and columns start at 1, the end is exclusive."""
    span = finding.span
    return {
        "file": name,
        "line": span.line if span else 1,
        "column": span.column if span else 1,
        "end_line": span.end_line if span else 1,
        "end_column": span.end_column if span else 1,
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "hint": finding.hint,
    }


def _summary(findings: Sequence[Finding], n_files: int) -> str:
    """The last line: how much of what was found."""
    parts = []
    for severity in ("error", "warning", "note"):
        count = sum(finding.severity == severity for finding in findings)
        if count:
            parts.append(f"{count} {severity}{'s' if count > 1 else ''}")
    files = f"{n_files} file{'s' if n_files != 1 else ''}"
    return f"{files}: {', '.join(parts) or 'nothing to complain about'}"
