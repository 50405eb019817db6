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

    code = "TC42"


class VerificationError(TcfuseError):
    """A produced model or kernel does not give the right answer."""


class DeviceError(TcfuseError):
    """There is no GPU that can be used, or its driver refused something."""


class WorkerError(TcfuseError):
    """The workers that candidates are given to cannot be reached, or cannot be used."""


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

    @property
    def end_line(self) -> int:
        """Number of the line the span ends on, from 1."""
        return self.source.count("\n", 0, self.end) + 1

    @property
    def end_column(self) -> int:
        """Number of the column after the last character, from 1."""
        return self.end - (self.source.rfind("\n", 0, self.end) + 1) + 1

    def excerpt(self) -> str:
        """The lines the span lies on, each underlined; of a long span without the middle."""
        lines = self.source.split("\n")[self.line - 1 : self.end_line]
        width = len(str(self.end_line))
        shown: list[str] = []
        for offset, text in enumerate(lines):
            if len(lines) > _MOST_LINES and offset == _MOST_LINES - 2:
                shown.append(f" {'':{width}} | ...")
            if len(lines) > _MOST_LINES and _MOST_LINES - 2 <= offset < len(lines) - 1:
                continue
            number = self.line + offset
            marks = self._underline(text, number)
            shown.append(f" {number:{width}} | {_clipped(text, len(marks))}".rstrip())
            if marks:
                shown.append(f" {'':{width}} | {marks}")
        return "\n".join(shown)

    def _underline(self, text: str, number: int) -> str:
        """The marks below line ``number``: a caret where the span starts, tildes after it."""
        first = self.column - 1 if number == self.line else len(text) - len(text.lstrip())
        last = self.end_column - 1 if number == self.end_line else len(text.rstrip())
        caret = "^" if number == self.line else "~"
        marks = caret + "~" * (last - first - 1)
        # Tabs stay, so that the marks stand below what they mark.
        indent = "".join("\t" if c == "\t" else " " for c in text[:first])
        return indent + marks if number == self.line or last > first else ""


_MOST_LINES = 6
_MOST_COLUMNS = 120


def _clipped(text: str, marked: int) -> str:
    """The first ``marked`` columns of a very long line and some more."""
    end = max(marked, _MOST_COLUMNS)
    return text if len(text) <= end + _MOST_COLUMNS // 2 else f"{text[:end]} ..."


class TcError(TcfuseError):
    """A TC program is ill-formed.

    Args:
        message: What is wrong, lower case, no full stop, naming the offending thing.
        span: Where.
        hint: What to write instead, if there is one obvious repair.
        code: The diagnostic, ``TC01`` for example; ``tc.diagnostics`` lists them.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        hint: str | None = None,
        *,
        code: str = "",
    ) -> None:
        self.message, self.span, self.hint, self.code = message, span, hint, code
        super().__init__(str(self))

    def __str__(self) -> str:
        return render("error", self.code, self.message, self.span, self.hint)


def render(severity: str, code: str, message: str, span: Span | None, hint: str | None) -> str:
    """A diagnostic as people read it; only its sentence when it has no place."""
    tag = f" [{code}]" if code else ""
    if span is None:
        return message + tag + (f"; {hint}" if hint else "")
    where = f"{span.filename}:{span.line}:{span.column}: {severity}: {message}{tag}"
    return f"{where}\n{span.excerpt()}" + (f"\n   = help: {hint}" if hint else "")
