"""Output of the commands, even if the disk is full or the reader of a pipe has closed it."""

from __future__ import annotations

import errno
import os
import select
import sys
from contextlib import suppress

from fgp_vnn.base.errors import os_reason

WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
NOBODY_READS = 141  # exit code of a program terminated by SIGPIPE


def complain(text: str) -> None:
    """Print one line on standard error; ignore it if that fails."""
    with suppress(OSError):
        print(f"fgp-vnn: {' '.join(text.split())}", file=sys.stderr, flush=True)


def reader_has_gone() -> bool:
    """Whether the reader of the output has closed it, as `head` does; then discard the rest."""
    output = sys.stdout.fileno()
    if not hasattr(select, "poll"):  # on Windows
        return False
    poll = select.poll()
    poll.register(output, 0)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    discard_output()
    return True


def describe_os_error(error: OSError) -> str:
    """Return a one-line description of an OSError; a write error without a file name, such as a
    full disk, is attributed to the output."""
    reason = os_reason(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    if error.errno in WRITING:
        discard_output()
        return f"the output cannot be written: {reason}"
    return reason


def discard_output() -> None:
    """Redirect standard output to the null device, so that flushing at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
