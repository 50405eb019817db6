"""Where the user's wisdom is, and how much of it there may be."""

from __future__ import annotations

from pathlib import Path

from tcfuse.debug import cache_dir

NAME = "wisdom.sqlite"
MOST_PER_PROBLEM = 10  # entries for each set of versions, as many as the original's cache keeps
MOST_ENTRIES = 100_000


def default_path() -> Path:
    """Where the user's wisdom is."""
    return cache_dir() / NAME
