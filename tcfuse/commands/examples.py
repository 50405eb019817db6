"""The examples in a command's help."""

from __future__ import annotations


def examples(*lines: str) -> str:
    """The end of a command's help, an example a line (what the backspace asks for)."""
    return "Examples:\n\n\b\n" + "\n".join(f"  {line}" for line in lines)
