"""A worker process with limits on time and memory: past them it is killed and replaced."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.leash import kill_group
from fgp_vnn.bench.printed import last_line, printed
from fgp_vnn.bench.record import Answer
from fgp_vnn.bench.tables import file_name
from fgp_vnn.budget.host import held_memory

_START_SECONDS = 300.0  # loading torch from a cold disk may take long
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class WorkerSpec:
    """How to start a worker."""

    verifier: str  # module:function, called as verify(onnx, vnnlib, timeout=..., **settings)
    settings: dict[str, Any]
    grace: float  # seconds past the limit of an instance after which a worker is killed
    memory: int  # bytes that a worker may hold
    certificates: str = ""  # folder for the proofs of unsats; empty: none are written
    threads: int = 0  # of one worker; 0: as set in the environment


class WorkerDied(Exception):
    """The process ended, or was ended, without an answer; the message says why."""


class GuardedWorker:
    """A `Solver` in a process of its own."""

    def __init__(self, spec: WorkerSpec, log: Path | None = None) -> None:
        self._spec = spec
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._stopped = False

    @property
    def pid(self) -> int | None:
        """The worker's process id; None if there is no worker."""
        return self._process.pid if self._process else None

    def run(self, instance: Instance) -> Answer:
        self.start()
        begin = self._log.stat().st_size if self._log else 0
        answer = self._solved(instance)
        return replace(answer, log=printed(self._log, begin)) if self._log else answer

    def _solved(self, instance: Instance) -> Answer:
        """Return the worker's answer, or an error that says why there is none."""
        start = time.perf_counter()
        job = {
            "networks": list(instance.network_files),
            "property": instance.property_file,
            "timeout": instance.timeout,
        }
        if self._spec.certificates:
            name = f"{file_name(instance.key)}.npz"
            job["certificate"] = str(Path(self._spec.certificates) / name)
        try:
            answer = Answer(**self._ask(job))
        except WorkerDied as death:
            self.close()
            return Answer("error", time.perf_counter() - start, reason=str(death))
        if answer.certificate:
            answer = self._checked(answer, job)
        half = self._spec.memory // 2
        if answer.reason.startswith("out of memory") or self._resident() > half:
            self.close()  # memory is fragmented or not returned to the system: start a new one
        return answer

    def _ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return the worker's answer to a job; its limit is the instance's time plus the grace."""
        grace = self._spec.grace
        self._say(job)
        return self._hear(job["timeout"] + grace, f"no answer {grace:g} s after its limit")

    def _checked(self, answer: Answer, job: dict[str, Any]) -> Answer:
        """Return the answer with the result of checking its certificate.

        The check has its own time, as long as the instance's limit; if it fails, the answer stays.
        """
        try:
            found = self._ask({**job, "check": True})
        except WorkerDied as death:
            self.close()
            return replace(answer, reason=f"certificate not checked: {death}")
        return replace(
            answer,
            certified=not found["fault"],
            reason=found["fault"] or answer.reason,
            seconds={**answer.seconds, "check_certificate": found["seconds"]},
            statistics={**answer.statistics, **found["statistics"]},
        )

    def start(self) -> None:
        """Start a process if none runs and wait until it is warm; InputError if it fails twice."""
        for last_try in (False, True):
            if self._process is not None and self._process.poll() is None:
                return
            self.close()  # it may have died since its last answer
            try:
                self._start()
                return
            except WorkerDied as death:
                self.close()
                if last_try or self._stopped:
                    raise InputError(f"workers do not start: {death}") from death

    def stop(self) -> None:
        self._stopped = True
        _kill(self._process)  # `run` then sees the end of its pipe

    def _start(self) -> None:
        spec = self._spec
        command = [sys.executable, "-m", __package__ + ".worker"]
        command += [spec.verifier, json.dumps(spec.settings), str(spec.memory)]
        environment = dict(os.environ)
        if spec.threads:
            environment["OMP_NUM_THREADS"] = str(spec.threads)
        with open(self._log or os.devnull, "ab") as log:  # noqa: PTH123
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C reaches the coordinator only
            )
        if self._stopped:
            _kill(self._process)
        self._unread = b""
        message = self._hear(_START_SECONDS, "no sign of life")
        if "failed" in message:
            self.close()
            raise InputError(str(message["failed"]))

    def _say(self, message: dict[str, Any]) -> None:
        process = self._process
        assert process is not None and process.stdin is not None
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise WorkerDied(self._last_words()) from None

    def _hear(self, seconds: float, late: str) -> dict[str, Any]:
        """Return the next message; raise WorkerDied after `seconds`, or over the memory limit."""
        process = self._process
        assert process is not None and process.stdout is not None
        deadline = time.monotonic() + seconds
        pipe = process.stdout.fileno()
        while b"\n" not in self._unread:
            wait = min(_POLL_SECONDS, max(0.0, deadline - time.monotonic()))
            if select.select([pipe], [], [], wait)[0]:
                chunk = os.read(pipe, 1 << 20)
                if not chunk:
                    raise WorkerDied(self._last_words())
                self._unread += chunk
            elif self._resident() > self._spec.memory:
                limit = self._spec.memory / 2**20
                raise WorkerDied(f"over its memory limit of {limit:.0f} MB")
            elif time.monotonic() >= deadline:
                raise WorkerDied(f"{late}: killed")
        line, _, self._unread = self._unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def _resident(self) -> int:
        """Return the bytes of memory that the worker holds now; 0 once it has ended."""
        try:
            return held_memory(self.pid) if self.pid else 0
        except psutil.Error:
            return 0

    def _last_words(self) -> str:
        """Say how the process ended, with the last line it printed."""
        if self._stopped:
            return "stopped"
        assert self._process is not None
        code = self._process.wait()
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"the worker ended {how}" + (last_line(self._log) if self._log else "")

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        _kill(process)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # an unsent rest of a message to a dead worker
                    pipe.close()


def _kill(process: subprocess.Popen[bytes] | None) -> None:
    """Kill the worker and its child processes, unless it was waited for: its id may be reused."""
    if process is not None and process.returncode is None:
        kill_group(process.pid)
