"""The processes that a test has started."""

from __future__ import annotations

import psutil

_before: set[int] = set()


def begin() -> None:
    """Leave out what runs already, such as the standard library's tracker of resources."""
    _before.clear()
    _before.update(child.pid for child in psutil.Process().children())


def children() -> list[psutil.Process]:
    """Those that were started since `begin` and are not gone."""
    return [child for child in psutil.Process().children() if child.pid not in _before]
