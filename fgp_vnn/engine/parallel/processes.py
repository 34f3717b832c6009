"""Worker processes that are forks of this one and end with it.

A fork has all of this process at once: the network, its bounds and the libraries, without reading
or sending anything. It runs torch with one thread, since a fork has no copy of the thread pool. A
socket connects the two processes; a fork ends when its side of the socket is closed.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import torch

from fgp_vnn.base.story import LOG
from fgp_vnn.base.threads import only_watched
from fgp_vnn.budget.host import share_limits
from fgp_vnn.engine.parallel.messages import packed, unpacked
from fgp_vnn.engine.parallel.worker import Work, Worker
from fgp_vnn.strategy import COMMON


def can_fork() -> bool:
    """Whether a fork of this process can run safely: not if unknown threads may hold a lock, nor if
    system libraries do not survive a fork."""
    linux = sys.platform.startswith("linux")
    return linux and only_watched() and not bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, since other processes have the other cores; afterwards with as many
    as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Member(ABC):
    """Handle of a worker process in the main process."""

    @abstractmethod
    def send(self, message: Any) -> None:
        """Send a message; raises OSError if the worker is gone or does not read it."""

    @abstractmethod
    def receive(self) -> Any:
        """The next message, which has begun to arrive; raises EOFError or OSError if the worker is
        gone or the rest of the message does not come."""

    @property
    def ready(self) -> bool:
        """Whether the worker has started."""
        return True

    @property
    @abstractmethod
    def stopped(self) -> bool:
        """Whether the worker was stopped, or has been silent for too long."""

    @abstractmethod
    def end(self) -> None:
        """Kill the process at once."""


class Staff(ABC):
    """A source of worker processes."""

    @abstractmethod
    def hire(self, work: Work, others: Sequence[Member], parts: int) -> Member:
        """Start a worker beside the workers `others`. It may use one of `parts` equal parts of the
        memory that limits leave. Raises OSError if no worker can start."""

    @abstractmethod
    def heard(self, members: Sequence[Member], seconds: float) -> Sequence[Member]:
        """The members with a message waiting, after at most this many seconds."""


@dataclass(eq=False)
class Process(Member):
    """Handle of a forked process."""

    number: int
    connection: Connection

    def send(self, message: Any) -> None:
        self.connection.send_bytes(packed(message))

    def receive(self) -> Any:
        return unpacked(self.connection.recv_bytes())

    def awaited(self, seconds: float) -> Any:
        """The next message; raises TimeoutError if none begins to arrive in this many seconds."""
        if not self.connection.poll(seconds):
            raise TimeoutError(f"nothing was heard for {seconds:.0f} s")
        return self.receive()

    @property
    def stopped(self) -> bool:
        try:
            about = Path(f"/proc/{self.number}/stat").read_text()
        except OSError:  # the process has ended, or the system has no /proc
            return False
        return about.rpartition(")")[2].split()[0] in "Tt"

    def end(self) -> None:
        with suppress(OSError):
            os.kill(self.number, signal.SIGKILL)
        self.connection.close()
        with suppress(OSError):  # it has been waited for already
            os.waitpid(self.number, 0)


def fork(
    work: Callable[[Connection], None],
    others: Sequence[Process],
    parts: int,
    stalled: float = COMMON.stalled,
) -> Process:
    """Fork a process that runs `work` and ends. It may use one of `parts` equal parts of the memory
    that limits leave, and closes the connections to `others`. A read or write fails after `stalled`
    seconds without a byte."""
    ours, theirs = Pipe()
    _set_timeout(ours, stalled)
    # No signal may reach the fork while it still has the handlers of the main process.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    number = -1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # "process is multi-threaded"
            number = os.fork()
    finally:
        if number:  # the main process
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if number:
        theirs.close()
        return Process(number, ours)
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for connection in (ours, *(other.connection for other in others)):
            connection.close()
        _settle_in(parts)
        work(theirs)
    finally:
        os._exit(0)


class Forks(Staff):
    """Workers that are forks of this process."""

    def hire(self, work: Work, others: Sequence[Member], parts: int) -> Process:
        own = [other for other in others if isinstance(other, Process)]
        return fork(lambda connection: Worker(connection, work).serve(), own, parts)

    def heard(self, members: Sequence[Member], seconds: float) -> Sequence[Member]:
        lines = {m.connection: m for m in members if isinstance(m, Process)}
        return [lines[line] for line in wait(list(lines), seconds) if isinstance(line, Connection)]


def _set_timeout(connection: Connection, seconds: float) -> None:
    """Let reads and writes fail after this many seconds without a byte: a stopped process keeps its
    end open, and neither reads nor writes."""
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _settle_in(parts: int) -> None:
    """Detach this fork from its parent's resources: memory, log and streams."""
    gc.freeze()  # a garbage collection would copy the shared memory
    share_limits(parts)
    logging.disable()
    LOG.disabled = True
    torch.set_num_threads(1)
    devnull = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(devnull, stream)
