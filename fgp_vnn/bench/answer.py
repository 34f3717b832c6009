"""The answer to one instance, and what gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.rules import Standing


@dataclass(frozen=True)
class Answer:
    """A verdict in plain values, as it travels between processes and machines."""

    status: str
    run_time: float  # seconds of wall clock in the verifier, reading files included
    decided_by: str = ""
    reason: str = ""
    counterexample: str = ""  # the text of a results file
    confirmed: bool | None = None
    standings: Mapping[str, Standing] = field(default_factory=dict)  # by year
    log: str = ""  # what was printed meanwhile
    certificate: str = ""  # where its proof is, in the folder of certificates
    certified: bool | None = None  # by the checker; None: there was nothing to check
    seconds: Mapping[str, float] = field(default_factory=dict)
    statistics: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    prepare_time: float = 0.0  # seconds before the time limit begins to count


@dataclass(frozen=True)
class Limits:
    """What one instance may use."""

    grace: float  # seconds past its time limit after which a worker is killed
    memory: int  # bytes of resident memory


class Solver(Protocol):
    """Answers one instance at a time; a failure is the answer `error`, not an exception."""

    def run(self, instance: Instance) -> Answer:
        """Return the answer, at the latest some time after the instance's limit."""

    def stop(self) -> None:
        """End at once; may be called from another thread while `run` waits."""

    def close(self) -> None:
        """Free everything; not to be called while `run` waits."""


def as_record(instance: Instance, answer: Answer, expected: str = "") -> Record:
    """Return the result of an instance; an answer after its time limit counts as a timeout.

    `expected` is sat or unsat where the true answer is known.
    """
    late = answer.run_time > instance.timeout and answer.status in ("sat", "unsat")
    return Record(
        category=instance.category,
        onnx=instance.onnx,
        vnnlib=instance.vnnlib,
        timeout=instance.timeout,
        result="timeout" if late else answer.status,
        run_time=answer.run_time,
        prepare_time=answer.prepare_time,
        decided_by=answer.decided_by,
        reason="the answer came after the time limit" if late else answer.reason,
        late=answer.status if late else "",
        expected=expected,
        confirmed=answer.confirmed,
        standings=answer.standings,
        certificate=answer.certificate,
        certified=answer.certified,
        seconds=answer.seconds,
        statistics=answer.statistics,
        versions=answer.versions,
        machine=answer.machine,
    )
