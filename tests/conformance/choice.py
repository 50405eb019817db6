"""Which cases a conformance run takes: all, a sample, those of a name, one slice of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


def add_choice(parser: argparse.ArgumentParser, every: int) -> None:
    """The options that ``chosen`` reads; without any, the sample is every so manieth case."""
    parser.add_argument("--all", action="store_true", help="every case, not a sample")
    parser.add_argument("--every", type=int, default=every, help="which cases the sample has")
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--slice", type=part, default=(1, 1), metavar="K/N", help="one part")


def chosen(arguments: argparse.Namespace, cases: Sequence[Any]) -> list[Any]:
    """The cases that the options ask for."""
    named = [case for case in cases if arguments.only in case.name]
    sample = named if arguments.all or arguments.only else named[:: arguments.every]
    first, parts = arguments.slice
    return sample[first - 1 :: parts]


def part(text: str) -> tuple[int, int]:
    """``2/8`` as numbers: the second of eight parts.

    Raises:
        ValueError: It is no part.
    """
    first, parts = map(int, text.split("/"))
    if not 1 <= first <= parts:
        raise ValueError(text)
    return first, parts
