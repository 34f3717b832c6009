"""Wrong verdicts, disagreements between tools, and the score of each tool.

The competition's rules of one year decide which verdicts are wrong, and the points. A late answer
is a timeout: neither right nor wrong.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fgp_vnn.bench.record import Record
from fgp_vnn.bench.rules import NEWEST, Rules
from fgp_vnn.bench.tables import Key

Runs = Mapping[str, Mapping[Key, Record]]  # tool -> instance -> result


@dataclass(frozen=True)
class Score:
    """Summary numbers of one tool; `score_texts` returns them as text."""

    tool: str
    instances: int
    solved: int  # correctly and in time
    sat: int
    unsat: int
    unique: int  # solved by no other tool
    late: int  # sat or unsat after the time limit
    wrong: int
    not_strict: int  # counterexamples that are valid only with a tolerance, or not at all
    median: float | None  # of the seconds of solved instances
    par2: float  # mean seconds, an unsolved instance counting twice its limit
    points: int  # of VNN-COMP


# The columns of a summary of several tools: fields of a score, and their titles.
SCORE_TITLES = {name: name for name in ("solved", "sat", "unsat", "unique", "late", "wrong")}
SCORE_TITLES |= {"not_strict": "not strict", "median": "median s", "par2": "PAR-2 s"}
SCORE_TITLES |= {"points": "points"}


def score_titles(tools: int) -> dict[str, str]:
    """Return the columns of a summary of so many tools; for one, `unique` would repeat `solved`."""
    return {name: title for name, title in SCORE_TITLES.items() if tools > 1 or name != "unique"}


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
    truth: str  # sat or unsat; empty if unknown
    evidence: str
    wrong: tuple[str, ...]  # tools
    reasons: Mapping[str, str]  # tool -> why its counterexample is not valid
    late: tuple[str, ...] = ()  # tools whose claim came after the time limit


def truth_of(records: Iterable[Record], rules: Rules) -> tuple[str, str]:
    """Return the true answer (sat, unsat or empty) and the evidence for it.

    A valid counterexample overrules every table of known answers. A tolerated one does so only if
    the rules say that it proves sat.
    """
    records = list(records)
    proofs = ("valid", "tolerated") if rules.tolerated_proves else ("valid",)
    if any(record.claim == "sat" and record.standing(rules) in proofs for record in records):
        return "sat", "a counterexample that onnxruntime confirms"
    known = next((record.expected for record in records if record.expected), "")
    return known, "ground truth" if known else ""


def is_wrong(record: Record, truth: str, rules: Rules) -> bool:
    """Whether a result is wrong: its counterexample does not count, or it contradicts the truth.

    A counterexample within tolerance is accepted, whatever the truth is.
    """
    if not record.solved:
        return False
    found = record.standing(rules)
    if record.result == "sat" and found is not None:
        return found == "invalid"
    return bool(truth) and record.result != truth


def disagreements(runs: Runs, rules: Rules = NEWEST) -> list[Disagreement]:
    """Return the instances with a wrong verdict or with contradicting claims, in order."""
    found = []
    for key, truth, evidence in _truths(runs, rules):
        records = {tool: results[key] for tool, results in runs.items() if key in results}
        claims = {tool: record.claim for tool, record in records.items() if record.claim}
        wrong = tuple(tool for tool, record in records.items() if is_wrong(record, truth, rules))
        if wrong or len({*claims.values(), truth} - {""}) > 1:
            late = tuple(tool for tool in claims if records[tool].late)
            reasons = {t: r.reason for t, r in records.items() if r.confirmed is False}
            found.append(Disagreement(key, claims, truth, evidence, wrong, reasons, late))
    return found


def known_answers(runs: Runs, rules: Rules = NEWEST) -> int:
    """Return the number of instances whose true answer is known; on others, no unsat is wrong."""
    return sum(bool(truth) for _, truth, _ in _truths(runs, rules))


def scores(runs: Runs, rules: Rules = NEWEST) -> list[Score]:
    """Return one score per tool, in the order of the tools."""
    truths = {key: truth for key, truth, _ in _truths(runs, rules)}
    right = right_answers(runs, rules)
    found = []
    for tool, results in runs.items():
        wrong = [r for key, r in results.items() if is_wrong(r, truths[key], rules)]
        others = set().union(*(keys for name, keys in right.items() if name != tool))
        found.append(_score(tool, results, right[tool], others, len(wrong), rules))
    return found


def category_scores(runs: Runs, rules: Rules = NEWEST) -> dict[str, list[Score]]:
    """Return the scores of all tools in each category."""
    keys = dict[str, set[Key]]()
    for key in all_keys(runs):
        keys.setdefault(key[0], set()).add(key)
    return {category: scores(within(runs, own), rules) for category, own in keys.items()}


def right_answers(runs: Runs, rules: Rules) -> dict[str, set[Key]]:
    """Return the instances that each tool solved: in time, and not known to be wrong."""
    truths = {key: truth for key, truth, _ in _truths(runs, rules)}
    return {
        tool: {
            key
            for key, record in results.items()
            if record.solved and not is_wrong(record, truths[key], rules)
        }
        for tool, results in runs.items()
    }


def all_keys(runs: Runs) -> list[Key]:
    """Return every instance that any tool has a result for, in the order of the first tool."""
    return list(dict.fromkeys(key for results in runs.values() for key in results))


def _truths(runs: Runs, rules: Rules) -> list[tuple[Key, str, str]]:
    """Return each instance with its true answer and the evidence for it."""
    return [
        (key, *truth_of((results[key] for results in runs.values() if key in results), rules))
        for key in all_keys(runs)
    ]


def within(runs: Runs, keys: set[Key]) -> Runs:
    """Return the results on these instances only."""
    return {
        tool: {key: record for key, record in results.items() if key in keys}
        for tool, results in runs.items()
    }


def _score(
    tool: str,
    results: Mapping[Key, Record],
    right: set[Key],
    others: set[Key],
    wrong: int,
    rules: Rules,
) -> Score:
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
        late=sum(bool(record.late) for record in results.values()),
        wrong=wrong,
        not_strict=sum(record.confirmed is False for record in results.values()),
        median=statistics.median(times) if times else None,
        par2=statistics.fmean([*times, *unsolved]) if results else 0.0,
        points=rules.right * len(right) + rules.wrong * wrong,
    )
