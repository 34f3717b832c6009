"""Pausing of Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused(keep: bool = False) -> Iterator[None]:
    """Pause the collector while many permanent objects are created, such as the modules of torch or
    a tree of a million lists: it would scan all of them again and again.

    With `keep`, it will never scan what exists at the end, even after an error: only for a process
    of our own.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if keep:
            gc.freeze()
        if enabled:
            gc.enable()
