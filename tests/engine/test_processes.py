"""Forks of the main process."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection

import pytest

from fgp_vnn.engine.parallel.messages import packed
from fgp_vnn.engine.parallel.processes import can_fork, fork

pytestmark = pytest.mark.skipif(not can_fork(), reason="this system cannot fork safely")


def test_a_signal_at_the_moment_of_a_fork_does_not_reach_the_handler_of_the_main_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual, (told, tells) = os.fork, os.pipe()

    def interrupted() -> int:
        number = usual()
        if not number:
            os.kill(os.getpid(), signal.SIGINT)
        return number

    def work(connection: Connection) -> None:
        connection.send_bytes(packed("done"))

    monkeypatch.setattr(os, "fork", interrupted)
    before = signal.signal(signal.SIGINT, lambda number, frame: os.write(tells, b"handled"))
    try:
        process = fork(work, (), 1)
        assert process.awaited(30) == "done"
        process.end()
    finally:
        signal.signal(signal.SIGINT, before)
    os.close(tells)
    assert os.read(told, 10) == b""
    os.close(told)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())
