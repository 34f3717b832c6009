"""Actors of a Ray cluster as the workers of a search.

A search is sent to every actor once, as bytes; parts of it and reports are sent as between
processes of one machine. If an actor dies, alone or with its node, or does not answer for a while,
only its results since its last report are lost.
"""

from __future__ import annotations

import logging
import math
import pickle
import queue
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch

from fgp_vnn.base.cluster import Cluster, connected
from fgp_vnn.base.story import Stage, tell
from fgp_vnn.base.threads import start_watching
from fgp_vnn.engine.parallel.messages import packed, unpacked
from fgp_vnn.engine.parallel.processes import Member, Staff
from fgp_vnn.engine.parallel.worker import Work, Worker
from fgp_vnn.engine.settings import Settings

_POLL = 1.0  # seconds after which an actor answers, even if it has no message
_SILENT = 10.0  # seconds without an answer after which an actor counts as stopped
_STARTING = 120.0  # the same before its first answer


@contextmanager
def hired(settings: Settings) -> Iterator[Actors | None]:
    """The actors of the user's cluster; None if the search stays on this machine."""
    if settings.cluster is None:
        yield None
        return
    tell(Stage("join the cluster"), logging.INFO)
    with connected(settings.cluster, settings.jobs, "cpu") as cluster:
        yield Actors(cluster)


class _Queues:
    """A worker's line to the process that calls its actor: two queues."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.outbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def send_bytes(self, data: bytes, /) -> None:
        self.outbox.put(data)

    def recv_bytes(self) -> bytes:
        return self.inbox.get()


class Node:
    """The actor on a node: a worker and its two message queues."""

    def __init__(self, work: bytes) -> None:
        torch.set_num_threads(1)
        self._line = _Queues()
        start_watching("worker", Worker(self._line, unpacked(work)).serve)

    def hear(self, data: bytes) -> None:
        """Pass a message to the worker."""
        self._line.inbox.put(data)

    def say(self, seconds: float) -> list[bytes]:
        """The worker's next messages; empty if there is none within this many seconds."""
        outbox = self._line.outbox
        found = []
        with suppress(queue.Empty):
            found.append(outbox.get(timeout=seconds))
            while True:
                found.append(outbox.get_nowait())
        return found


class Actor(Member):
    """Handle of an actor in the process that hands out work."""

    def __init__(self, handle: Any) -> None:
        self._handle, self._said = handle, deque[bytes]()
        self._begun, self._heard = time.monotonic(), math.inf
        self._lost = False
        self.answer = handle.say.remote(_POLL)

    @property
    def ready(self) -> bool:
        return self._heard < math.inf

    @property
    def stopped(self) -> bool:
        if not self.ready:
            return time.monotonic() - self._begun > _STARTING
        return time.monotonic() - self._heard > _SILENT

    def send(self, message: Any) -> None:
        self._handle.hear.remote(packed(message))

    def collect(self) -> int:
        """Take the answer that has arrived; returns its number of messages, or 1 if the actor is
        lost."""
        import ray

        try:
            found = ray.get(self.answer)
        except ray.exceptions.RayError:
            self._lost = True
            return 1
        self._heard = time.monotonic()
        self._said.extend(found)
        self.answer = self._handle.say.remote(_POLL)
        return len(found)

    def receive(self) -> Any:
        if self._lost and not self._said:
            raise EOFError("the actor is lost")
        return unpacked(self._said.popleft())

    def end(self) -> None:
        import ray

        with suppress(Exception):  # the actor, its node or the cluster may be gone
            ray.kill(self._handle)


class Actors(Staff):
    """Actors of a cluster, one per core."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.capacity = cluster.capacity

    def hire(self, work: Work, others: Sequence[Member], parts: int) -> Actor:
        import ray

        # The proof log is not sent: a copy collects its proofs for its reports.
        try:
            copy = work.search.copy(_nobody, work.budget, work.number)
            data = packed(work._replace(search=copy))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise OSError(f"the search cannot be sent: {error}") from error
        make = ray.remote(max_concurrency=4, **self._cluster.resources)(Node)
        return Actor(make.remote(data))

    def heard(self, members: Sequence[Member], seconds: float) -> Sequence[Member]:
        import ray

        answers = {member.answer: member for member in members if isinstance(member, Actor)}
        some = ray.wait(list(answers), num_returns=len(answers), timeout=0)[0]
        some = some or ray.wait(list(answers), num_returns=1, timeout=seconds)[0]
        return [answers[a] for a in some for _ in range(answers[a].collect())]


def _nobody(points: object) -> None:
    """Confirms nothing: a worker asks the process that hands out its work."""
