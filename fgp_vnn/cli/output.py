"""What a command prints, and what becomes of it where nobody reads it or the disk is full."""

from __future__ import annotations

import errno
import os
import select
import sys
from contextlib import suppress

from fgp_vnn.base.errors import one_line

WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
NOBODY_READS = 141  # the exit code of a program that SIGPIPE ends


def complain(text: str) -> None:
    """One line on standard error, if that can be written."""
    with suppress(OSError):
        print(f"fgp-vnn: {' '.join(text.split())}", file=sys.stderr, flush=True)


def reader_has_gone() -> bool:
    """Whether standard output is closed at its other end, as `head` does; the rest goes nowhere."""
    output = sys.stdout.fileno()
    if not hasattr(select, "poll"):  # on Windows
        return False
    poll = select.poll()
    poll.register(output, 0)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    _discard_output()
    return True


def fault(error: OSError) -> str:
    """What could not be read or written, and why; without a name, a disk is that of the output."""
    reason = error.strerror or one_line(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    if error.errno in WRITING:
        _discard_output()
        return f"the output cannot be written: {reason}"
    return reason


def _discard_output() -> None:
    """For what is still in the buffer at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
