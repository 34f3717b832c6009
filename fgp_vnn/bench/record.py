"""The answer to one instance, and the record of it: all data about one run of one instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.rules import Rules, Standing
from fgp_vnn.bench.tables import Keyed


@dataclass(frozen=True, kw_only=True)
class Known:
    """Data about an answer besides the answer itself."""

    prepare_time: float = 0.0  # seconds before the time limit begins to count
    decided_by: str = ""
    reason: str = ""  # why it is not decided, or the fault of its evidence
    confirmed: bool | None = None  # by onnxruntime; None: there was nothing to check
    standings: Mapping[str, Standing] = field(default_factory=dict)  # of a counterexample, by year
    certified: bool | None = None  # by the checker; None: there was nothing to check
    seconds: Mapping[str, float] = field(default_factory=dict)
    statistics: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer(Known):
    """A verdict as plain values, to be sent between processes and machines."""

    status: str
    run_time: float  # wall-clock seconds in the verifier, reading files included
    counterexample: str = ""  # the text of a results file
    log: str = ""  # output printed meanwhile
    certificate: str = ""  # file name of its proof in the folder of certificates


@dataclass(frozen=True)
class Record(Keyed, Known):
    """A row of results.csv, with further values that only results.jsonl has. File names are
    relative to the run's folder."""

    category: str
    onnx: str
    vnnlib: str
    timeout: float
    result: str  # one of STATUSES
    run_time: float  # seconds
    late: str = ""  # sat or unsat, if that was the answer but came after the time limit
    expected: str = ""  # sat or unsat, if the true answer is known
    counterexample: str = ""  # a results file
    log: str = ""  # the file with the output printed meanwhile
    certificate: str = ""  # the file with the proof of an unsat

    @property
    def solved(self) -> bool:
        """Whether the result is sat or unsat."""
        return self.result in ("sat", "unsat")

    @property
    def claim(self) -> str:
        """sat or unsat if that was the answer, in time or not; else empty."""
        return self.late or (self.result if self.solved else "")

    def standing(self, rules: Rules) -> Standing | None:
        """Standing of its counterexample under the rules; None: there was nothing to check."""
        if self.confirmed is None:
            return None
        strictly: Standing = "valid" if self.confirmed else "invalid"
        return self.standings.get(str(rules.year), strictly)

    @property
    def contradiction(self) -> str:
        """Why this result is wrong: its counterexample or the known answer; empty if it is not."""
        if self.confirmed is False:
            return f"sat, but its counterexample is not valid: {self.reason}"
        if self.claim and self.expected and self.claim != self.expected:
            return f"{self.claim}, expected {self.expected}"
        return ""

    @property
    def refusal(self) -> str:
        """Why the checker refused the certificate of this result; empty if it did not."""
        return self.reason if self.certified is False else ""

    def as_row(self) -> list[str]:
        """Return the cells of a results table of the competition."""
        times = f"{self.prepare_time:.6f}", f"{self.run_time:.6f}"
        return [self.category, self.onnx, self.vnnlib, times[0], self.result, times[1]]


_FIELDS = frozenset(field.name for field in fields(Record))


def record_from_dict(values: Mapping[str, Any]) -> Record:
    """Return a record from its fields by name; fields of a later version are ignored."""
    return Record(**{name: value for name, value in values.items() if name in _FIELDS})


_APART = ("status", "counterexample", "log")  # a record has `result`, and names of files


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
