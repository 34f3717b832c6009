"""Wrong verdicts, disagreements between tools, and the numbers that sum up a tool."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fgp_vnn.bench.record import Record
from fgp_vnn.bench.tables import Key

RIGHT_POINTS = 10
WRONG_POINTS = -150

Runs = Mapping[str, Mapping[Key, Record]]  # tool -> instance -> result


@dataclass(frozen=True)
class Score:
    """The numbers that sum up one tool; `score_texts` gives them as text."""

    tool: str
    instances: int
    solved: int  # correctly and in time
    sat: int
    unsat: int
    unique: int  # solved by no other tool
    wrong: int
    median: float | None  # seconds of a solved instance
    par2: float  # mean seconds, an unsolved instance counting twice its limit
    points: int  # of VNN-COMP


# The columns of a summary: fields of a score, and their titles.
SCORE_TITLES = {name: name for name in ("solved", "sat", "unsat", "unique", "wrong")}
SCORE_TITLES |= {"median": "median s", "par2": "PAR-2 s", "points": "score"}


def score_texts(score: Score) -> dict[str, str]:
    """Return the texts of a score's columns, by the fields of SCORE_TITLES."""
    texts = {name: str(getattr(score, name)) for name in SCORE_TITLES}
    texts["solved"] = f"{score.solved} / {score.instances}"
    texts["median"] = "-" if score.median is None else f"{score.median:.2f}"
    texts["par2"] = f"{score.par2:.2f}"
    return texts


@dataclass(frozen=True)
class Disagreement:
    """An instance with a wrong verdict, or with verdicts that contradict each other."""

    key: Key
    claims: Mapping[str, str]  # tool -> sat or unsat
    truth: str  # sat or unsat; empty if nothing here decides it
    evidence: str
    wrong: tuple[str, ...]  # tools
    reasons: Mapping[str, str]  # tool -> why its counterexample is not valid


def truth_of(records: Sequence[Record]) -> tuple[str, str]:
    """Return the true answer (sat, unsat or empty) and the evidence for it.

    A valid counterexample overrules every table of known answers.
    """
    if any(record.claim == "sat" and record.confirmed for record in records):
        return "sat", "a counterexample that onnxruntime confirms"
    known = next((record.expected for record in records if record.expected), "")
    return known, "ground truth" if known else ""


def is_wrong(record: Record, truth: str) -> bool:
    """Whether a result contradicts the truth, or is sat with an invalid counterexample."""
    return record.confirmed is False or bool(record.claim and truth and record.claim != truth)


def disagreements(runs: Runs) -> list[Disagreement]:
    """Return the instances with a wrong verdict or with contradicting claims, in order."""
    found = []
    for key in all_keys(runs):
        records = {tool: results[key] for tool, results in runs.items() if key in results}
        claims = {tool: record.claim for tool, record in records.items() if record.claim}
        truth, evidence = truth_of(list(records.values()))
        wrong = tuple(tool for tool, record in records.items() if is_wrong(record, truth))
        if wrong or len(set(claims.values())) > 1:
            reasons = {
                tool: record.reason for tool, record in records.items() if record.confirmed is False
            }
            found.append(Disagreement(key, claims, truth, evidence, wrong, reasons))
    return found


def scores(runs: Runs) -> list[Score]:
    """Return one score per tool, in the order of the tools."""
    truths = _truths(runs)
    right = right_answers(runs)
    return [
        _score(tool, results, right[tool], _others(right, tool), truths)
        for tool, results in runs.items()
    ]


def right_answers(runs: Runs) -> dict[str, set[Key]]:
    """Return the instances that each tool solved: in time, and not wrong by what is known."""
    truths = _truths(runs)
    return {
        tool: {
            key
            for key, record in results.items()
            if record.solved and not is_wrong(record, truths[key])
        }
        for tool, results in runs.items()
    }


def _truths(runs: Runs) -> dict[Key, str]:
    return {
        key: truth_of([results[key] for results in runs.values() if key in results])[0]
        for key in all_keys(runs)
    }


def all_keys(runs: Runs) -> list[Key]:
    """Return every instance that any tool has a result for, in the order of the first tool."""
    return list(dict.fromkeys(key for results in runs.values() for key in results))


def _others(right: Mapping[str, set[Key]], tool: str) -> set[Key]:
    return set().union(*(keys for name, keys in right.items() if name != tool))


def _score(
    tool: str,
    results: Mapping[Key, Record],
    right: set[Key],
    others: set[Key],
    truths: Mapping[Key, str],
) -> Score:
    wrong = [record for key, record in results.items() if is_wrong(record, truths[key])]
    words = [results[key].result for key in right]
    times = [results[key].run_time for key in right]
    unsolved = [2 * record.timeout for key, record in results.items() if key not in right]
    return Score(
        tool=tool,
        instances=len(results),
        solved=len(right),
        sat=words.count("sat"),
        unsat=words.count("unsat"),
        unique=len(right - others),
        wrong=len(wrong),
        median=statistics.median(times) if times else None,
        par2=statistics.fmean([*times, *unsolved]) if results else 0.0,
        points=RIGHT_POINTS * len(right)
        + WRONG_POINTS * sum(1 for record in wrong if not record.late),
    )
