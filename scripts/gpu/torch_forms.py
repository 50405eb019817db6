"""Small graphs in PyTorch whose shapes elsewhere are written for one batch size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Form = Callable[[Any], Any]


def plain(name: str) -> Form | None:
    """The form of a bench for any first dimension; ``None`` where the usual one is for any."""
    return _FORMS.get(name)


def _gn_silu(t: Any) -> Any:
    rows = t.x.view(t.x.shape[0], 32, -1)
    centred = rows - rows.mean(-1, keepdim=True)
    scaled = centred / ((centred * centred).mean(-1, keepdim=True) + 1e-5).sqrt()
    y = scaled.view_as(t.x) * t.gain + t.bias
    return y * y.sigmoid()


def _kru3(t: Any) -> Any:
    y = t.x.view(-1, 16, 16, 16) @ t.w2
    y = (y.transpose(2, 3) @ t.w1).permute(0, 2, 3, 1) @ t.w0
    return y.permute(0, 3, 2, 1).reshape(-1, 4096)


def _shuffle(t: Any) -> Any:
    n, c, h, w = t.x.shape
    return t.x.view(n, 3, c // 3, h, w).transpose(1, 2).reshape(n, c, h, w).relu()


_FORMS: dict[str, Form] = {"gn_silu": _gn_silu, "kru3": _kru3, "shuffle": _shuffle}
