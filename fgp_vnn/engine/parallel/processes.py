"""Processes that are copies of this one, and end with it.

A fork has all of this process at once: the network, its bounds and the libraries, without reading
or sending anything. It runs torch with one thread, since a fork has no copy of the
thread pool. Between the two goes a socket; whoever sees its end ends as well.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import struct
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import torch

from fgp_vnn.base.story import LOG
from fgp_vnn.base.threads import only_watched
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.host import share_limits
from fgp_vnn.engine.parallel.messages import packed, unpacked
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.strategy import COMMON, Sharing


def can_fork() -> bool:
    """Whether a copy of this process can go on by itself: not where threads of others may hold a
    lock in the middle of something, nor where system libraries do not survive it."""
    linux = sys.platform.startswith("linux")
    return linux and only_watched() and not bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


class Member(ABC):
    """A process that works on searches, seen from the first one."""

    @abstractmethod
    def send(self, message: Any) -> None:
        """Send a message; raises OSError if nobody is there any more, or nobody reads it."""

    @abstractmethod
    def receive(self) -> Any:
        """The next message, which has begun to arrive; raises EOFError or OSError if nobody is
        there any more, or the rest of it does not come."""

    @property
    def ready(self) -> bool:
        """Whether it has started."""
        return True

    @property
    @abstractmethod
    def stopped(self) -> bool:
        """Whether it was stopped, or has not been heard for too long."""

    @abstractmethod
    def end(self) -> None:
        """End the process at once, whatever it is doing."""


class Staff(ABC):
    """Where processes come from that work on searches."""

    @abstractmethod
    def hire(
        self,
        searches: Sequence[Divisible],
        budget: Budget,
        numbers: Sharing,
        others: Sequence[Member],
        parts: int,
        number: int,
    ) -> Member:
        """A process that works on parts of searches, within a budget, beside others, in one of so
        many parts of the memory that limits leave, with copies of this number; raises OSError if
        there is none."""

    @abstractmethod
    def heard(self, members: Sequence[Member], seconds: float) -> Sequence[Member]:
        """Those that have something to say, after at most so many seconds."""


@dataclass(eq=False)
class Process(Member):
    """A process that was forked, seen from this one."""

    number: int
    connection: Connection

    def send(self, message: Any) -> None:
        self.connection.send_bytes(packed(message))

    def receive(self) -> Any:
        return unpacked(self.connection.recv_bytes())

    def awaited(self, seconds: float) -> Any:
        """The same, for which so many seconds may pass before it begins to arrive."""
        if not self.connection.poll(seconds):
            raise TimeoutError(f"nothing was heard for {seconds:.0f} s")
        return self.receive()

    @property
    def stopped(self) -> bool:
        try:
            about = Path(f"/proc/{self.number}/stat").read_text()
        except OSError:  # it has ended, or this system does not tell
            return False
        return about.rpartition(")")[2].split()[0] in "Tt"

    def end(self) -> None:
        with suppress(OSError):
            os.kill(self.number, signal.SIGKILL)
        self.connection.close()
        with suppress(OSError):  # somebody else has waited for it
            os.waitpid(self.number, 0)


def fork(
    work: Callable[[Connection], None],
    others: Sequence[Process],
    parts: int,
    stalled: float = COMMON.stalled,
) -> Process:
    """A copy of this process that does some work and ends, in one of so many parts of the memory
    that limits leave; what `others` are told is not its business. After so many seconds without a
    byte it counts as stopped."""
    ours, theirs = Pipe()
    _wait_no_longer(ours, stalled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads
        number = os.fork()
    if number:
        theirs.close()
        return Process(number, ours)
    try:
        for connection in (ours, *(other.connection for other in others)):
            connection.close()
        _settle_in(parts)
        work(theirs)
    finally:
        os._exit(0)


def _wait_no_longer(connection: Connection, seconds: float) -> None:
    """Let reading and writing fail after so many seconds in which not a byte has moved: a process
    that was stopped keeps its end open, and neither reads nor writes."""
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def end_with(connection: Connection) -> None:
    """End this process when whoever is at the other side of the connection does."""
    with suppress(EOFError, OSError):
        connection.recv_bytes()
    os._exit(0)


def _settle_in(parts: int) -> None:
    """Leave alone what belongs to the process that this is a copy of."""
    gc.freeze()  # looking through what is shared would copy it
    share_limits(parts)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logging.disable()
    LOG.disabled = True
    torch.set_num_threads(1)
    devnull = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(devnull, stream)
