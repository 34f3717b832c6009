"""Progress messages of a command on standard error."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fgp_vnn.base.story import Stage, handled_by, listening

_CLEAR = "\r\x1b[K"


def add_verbose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="print each step on standard error; -vv also prints what a search does (default: off)",
    )


@contextmanager
def told(verbose: int) -> Iterator[None]:
    """Print each step as a line if `verbose`; otherwise show the current step if standard error is
    a terminal."""
    if verbose:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(relativeCreated)7d ms  %(message)s"))
        with handled_by(handler, logging.INFO if verbose == 1 else logging.DEBUG):
            yield
    elif sys.stderr.isatty():
        with listening(_show):
            yield
        clear()
    else:
        yield


def _show(stage: Stage | str) -> None:
    """Overwrite the progress line."""
    with suppress(OSError):
        sys.stderr.write(f"{_CLEAR}{stage}")
        sys.stderr.flush()


def clear() -> None:
    """Erase the progress line, if there is one."""
    if sys.stderr.isatty():
        _show("")
