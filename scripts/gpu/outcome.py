"""What came of an item, as it stands in the file of results."""

from __future__ import annotations

from typing import Any, TypeAlias

Outcome: TypeAlias = dict[str, Any]
"""``status`` says how it went; other entries depend on the kind of item.

``ok``; ``wrong``: another answer than float64's; ``failed``: an error, with ``why``;
``unfinished``: time was up;
``refused`` and ``outside``: there is no kernel, for the reason in ``why``; ``absent``:
something that is needed is not installed.
"""
