"""``tcfuse cache``: where it is, how large it is, and how to be rid of it."""

from __future__ import annotations

from tcfuse.commands.progress import print_lines, print_table
from tcfuse.store import Store


def info() -> int:
    """Print the folder and what is in it; the exit status."""
    store = Store.default()
    sizes = store.sizes()
    print_lines([str(store.root)])
    rows = [(kind, str(count), _megabytes(n)) for kind, (count, n) in sizes.items()]
    print_table(("kind", "files", "size"), rows) if rows else print_lines(["empty"])
    return 0


def clear() -> int:
    """Delete it; the exit status."""
    store = Store.default()
    n_bytes = sum(n for _, n in store.sizes().values())
    store.clear()
    print_lines([f"{store.root}: {_megabytes(n_bytes)} deleted"])
    return 0


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB"
