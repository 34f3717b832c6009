"""The answer to one instance, and the interface of solvers that give answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.record import Known, Record


@dataclass(frozen=True)
class Answer(Known):
    """A verdict as plain values, to be sent between processes and machines."""

    status: str
    run_time: float  # wall-clock seconds in the verifier, reading files included
    counterexample: str = ""  # the text of a results file
    log: str = ""  # output printed meanwhile
    certificate: str = ""  # file name of its proof in the folder of certificates


_APART = ("status", "counterexample", "log")  # a record has `result`, and names of files


class Solver(Protocol):
    """Answers one instance at a time; a failure is the answer `error`, not an exception."""

    def run(self, instance: Instance) -> Answer:
        """Return the answer, at the latest a while after the instance's time limit."""

    def stop(self) -> None:
        """End at once; may be called from another thread while `run` waits."""

    def close(self) -> None:
        """Free everything; not to be called while `run` waits."""


def as_record(instance: Instance, answer: Answer, expected: str) -> Record:
    """Return the result of an instance; an answer after its time limit counts as a timeout.

    `expected` is the true answer, sat or unsat; empty if it is not known.
    """
    known = {name: value for name, value in vars(answer).items() if name not in _APART}
    known |= {"result": answer.status, "late": "", "expected": expected}
    if answer.run_time > instance.timeout and answer.status in ("sat", "unsat"):
        known |= {"result": "timeout", "late": answer.status}
        known["reason"] = "the answer came after the time limit"
    named = instance.category, instance.onnx, instance.vnnlib, instance.timeout
    return Record(*named, **known)
