"""Handling of Ctrl-C while libraries are being imported or are computing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_CODE = 130
MESSAGE = "interrupted"


@contextmanager
def leave_on_interrupt() -> Iterator[None]:
    """End the process at the first Ctrl-C.

    A KeyboardInterrupt is not enough: one raised while a library is imported is swallowed there or
    turned into another exception.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield  # Ctrl-C is ignored, or another handler is installed
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, f"fgp-vnn: {MESSAGE}\n".encode())
    os._exit(EXIT_CODE)
