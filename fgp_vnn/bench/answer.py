"""What a worker says of one instance, and who can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.record import Record


@dataclass(frozen=True)
class Answer:
    """A verdict in plain values, as it travels between processes and machines."""

    status: str
    run_time: float  # seconds of wall clock in the verifier, files read and all
    decided_by: str = ""
    reason: str = ""
    counterexample: str = ""  # the text of a results file
    confirmed: bool | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    statistics: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Limits:
    """What one instance may use."""

    grace: float  # seconds past its time limit after which a worker is killed
    memory: int  # bytes of resident memory


class Solver(Protocol):
    """Answers one instance at a time, and always answers: what goes wrong is an `error`."""

    def run(self, instance: Instance) -> Answer: ...

    def stop(self) -> None:
        """Give up at once; may be called from another thread while `run` waits."""

    def close(self) -> None:
        """Free everything; called when `run` does not wait."""


def as_record(instance: Instance, answer: Answer, expected: str = "") -> Record:
    """The result of an instance; an answer after the time limit counts as a timeout."""
    late = answer.run_time > instance.timeout and answer.status in ("sat", "unsat")
    return Record(
        category=instance.category,
        onnx=instance.onnx,
        vnnlib=instance.vnnlib,
        timeout=instance.timeout,
        result="timeout" if late else answer.status,
        run_time=answer.run_time,
        decided_by=answer.decided_by,
        reason="the answer came after the time limit" if late else answer.reason,
        late=answer.status if late else "",
        expected=expected,
        confirmed=answer.confirmed,
        seconds=answer.seconds,
        statistics=answer.statistics,
        versions=answer.versions,
        machine=answer.machine,
    )
