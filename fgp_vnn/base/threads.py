"""Watcher threads: they only wait, so a fork of the process does not need them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

_PREFIX = "fgp_vnn "


def start_watching(name: str, target: Callable[..., None], *args: Any) -> None:
    """Start a thread that holds no lock while other threads run, and that ends with the process."""
    threading.Thread(target=target, args=args, name=_PREFIX + name, daemon=True).start()


def only_watched() -> bool:
    """Return whether all Python threads except the current one are watcher threads."""
    me = threading.current_thread()
    others = (thread for thread in threading.enumerate() if thread is not me)
    return all(thread.name.startswith(_PREFIX) for thread in others)
