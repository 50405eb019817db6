"""Every error tcfuse raises on purpose.

An ``UnsupportedError`` never ends a run: the fusion pass turns it into a rejection with its
sentence, and that region stays with ONNX Runtime.  All the others mean that the input, the
command line or a tool is at fault; ``cli.main`` prints them as one line.
"""

from __future__ import annotations

from dataclasses import dataclass


class TcfuseError(Exception):
    """The root of all errors below; its text is one sentence, lower case, no full stop."""


class InputError(TcfuseError):
    """A file or model the user gave cannot be used; the text names it and the way out."""


class OptionError(TcfuseError):
    """A flag or option has a value that cannot be used."""


class UnsupportedError(TcfuseError):
    """A stage cannot do this; the region is left to ONNX Runtime for the reason given."""


class IllegalTransformError(TcfuseError):
    """A schedule transformation was asked for where it is not legal."""


class VerificationError(TcfuseError):
    """A produced model or kernel does not give the right answer."""


class ToolchainError(TcfuseError):
    """A compiler failed.

    Args:
        message: What went wrong.
        command: The command line that reproduces it.
        output: What the compiler printed.
    """

    def __init__(self, message: str, command: str = "", output: str = "") -> None:
        super().__init__(message)
        self.command = command
        self.output = output


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters of a TC text, with the text it lies in."""

    source: str
    start: int
    end: int
    filename: str = "<tc>"

    @property
    def line(self) -> int:
        """Line number, from 1."""
        return self.source.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """Column number, from 1."""
        return self.start - (self.source.rfind("\n", 0, self.start) + 1) + 1

    def excerpt(self) -> str:
        """The line the span starts on, with a caret below the span's first character."""
        first = self.source.rfind("\n", 0, self.start) + 1
        last = self.source.find("\n", first)
        text = self.source[first : last if last >= 0 else len(self.source)]
        number = f" {self.line} | "
        gutter = " " * (len(number) - 2) + "| "
        return f"{number}{text}\n{gutter}{' ' * (self.column - 1)}^"


class TcError(TcfuseError):
    """A TC program is ill-formed.

    Args:
        message: What is wrong, lower case, no full stop, naming the offending thing.
        span: Where.
        hint: What to write instead, if there is one obvious repair.
    """

    def __init__(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        self.message, self.span, self.hint = message, span, hint
        super().__init__(str(self))

    def __str__(self) -> str:
        if self.span is None:
            return self.message
        where = (
            f"{self.span.filename}:{self.span.line}:{self.span.column}: error: {self.message}"
        )
        hint = f"\n   = help: {self.hint}" if self.hint else ""
        return f"{where}\n{self.span.excerpt()}{hint}"
