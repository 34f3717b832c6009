from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fgp_vnn.bench.record import Record
from fgp_vnn.bench.rules import RULES
from fgp_vnn.bench.score import Runs, category_scores, disagreements, known_answers, scores


def record(name: str, result: str, run_time: float = 1.0, **more: Any) -> Record:
    return Record("cat", name, "p", 10.0, result, run_time, **more)


def runs(**tools: list[Record]) -> Runs:
    return {tool: {item.key: item for item in records} for tool, records in tools.items()}


def test_a_valid_counterexample_makes_unsat_wrong_by_name() -> None:
    table = runs(
        a=[record("1", "sat", confirmed=True)],
        b=[record("1", "unsat")],
        c=[record("1", "unknown")],
    )
    (conflict,) = disagreements(table)
    assert (conflict.truth, conflict.wrong) == ("sat", ("b",))
    assert [score.wrong for score in scores(table)] == [0, 1, 0]
    assert [score.points for score in scores(table)] == [10, -150, 0]


def test_a_valid_counterexample_beats_the_ground_truth() -> None:
    table = runs(a=[record("1", "sat", confirmed=True, expected="unsat")])
    assert disagreements(table) == []
    assert scores(table)[0].points == 10


def test_sat_without_a_valid_counterexample_is_wrong_whatever_the_truth() -> None:
    table = runs(
        a=[record("1", "sat", confirmed=False, reason="outside", expected="sat")],
        b=[record("1", "sat", confirmed=True)],
    )
    (conflict,) = disagreements(table)
    assert conflict.wrong == ("a",)
    assert conflict.reasons == {"a": "outside"}


def test_claims_that_nothing_decides_are_listed_with_nobody_wrong() -> None:
    table = runs(a=[record("1", "sat")], b=[record("1", "unsat")])
    (conflict,) = disagreements(table)
    assert (conflict.truth, conflict.wrong) == ("", ())
    assert [score.solved for score in scores(table)] == [1, 1]


def test_the_ground_truth_decides_where_nobody_has_a_counterexample() -> None:
    table = runs(a=[record("1", "sat", expected="unsat")], b=[record("1", "unsat")])
    assert disagreements(table)[0].wrong == ("a",)


def test_a_late_answer_is_late_and_neither_right_nor_wrong() -> None:
    table = runs(a=[record("1", "timeout", late="unsat", expected="sat")])
    (conflict,) = disagreements(table)
    assert (conflict.wrong, conflict.late) == ((), ("a",))
    (score,) = scores(table)
    assert (score.late, score.wrong, score.points, score.solved) == (1, 0, 0, 0)


def test_a_late_counterexample_that_does_not_count_is_not_wrong() -> None:
    late = record("1", "timeout", late="sat", confirmed=False, reason="outside", expected="sat")
    assert disagreements(runs(a=[late])) == []
    assert scores(runs(a=[late]))[0].wrong == 0


def by_year(**words: str) -> dict[str, str]:
    return {name.removeprefix("y"): word for name, word in words.items()}


def test_a_tolerated_counterexample_is_right_and_proves_nothing_about_others() -> None:
    """Since 2024; in 2023 it made the unsat of others wrong."""
    near = by_year(y2023="tolerated", y2025="tolerated", y2026="tolerated")
    table = runs(
        a=[record("1", "sat", confirmed=False, reason="outside by 1e-8", standings=near)],
        b=[record("1", "unsat")],
    )
    for year, points in ((2026, [10, 10]), (2025, [10, 10]), (2023, [10, -150])):
        assert [score.points for score in scores(table, RULES[year])] == points
    first, _ = scores(table)
    assert (first.wrong, first.not_strict) == (0, 1)


def test_a_tolerated_counterexample_is_not_wrong_by_ground_truth() -> None:
    near = by_year(y2026="tolerated")
    table = runs(a=[record("1", "sat", confirmed=False, standings=near, expected="unsat")])
    (conflict,) = disagreements(table)
    assert conflict.wrong == ()


def test_the_rules_of_a_year_decide_what_is_wrong() -> None:
    words = by_year(y2025="tolerated", y2026="invalid")
    table = runs(a=[record("1", "sat", confirmed=False, standings=words)])
    assert scores(table, RULES[2025])[0].points == 10
    assert scores(table, RULES[2026])[0].points == -150


def test_known_answers_are_those_with_evidence() -> None:
    table = runs(
        a=[record("1", "sat", confirmed=True), record("2", "unsat"), record("3", "unknown")],
        b=[record("3", "unsat", expected="unsat")],
    )
    assert known_answers(table) == 2


def test_categories_are_scored_one_by_one() -> None:
    other = replace(record("1", "unsat"), category="other")
    found = category_scores(runs(a=[record("1", "unsat", expected="sat"), other]))
    assert {name: [s.points for s in table] for name, table in found.items()} == {
        "cat": [-150],
        "other": [10],
    }


def test_agreement_is_no_disagreement() -> None:
    table = runs(a=[record("1", "unsat")], b=[record("1", "unsat")], c=[record("1", "error")])
    assert disagreements(table) == []


def test_the_numbers_of_a_tool_are_those_of_its_right_answers() -> None:
    table = runs(
        a=[
            record("1", "unsat", 2.0),
            record("2", "unsat", 4.0),
            record("3", "sat", 6.0, confirmed=True),
            record("4", "timeout", 10.0),
            record("5", "unsat", 1.0, expected="sat"),
        ],
        b=[record("1", "unsat", 1.0), record("4", "unsat", 3.0)],
    )
    first, second = scores(table)
    assert (first.instances, first.solved, first.sat, first.unsat) == (5, 3, 1, 2)
    assert (first.unique, second.unique) == (2, 1)
    assert first.median == 4.0
    assert first.par2 == pytest.approx((2 + 4 + 6 + 20 + 20) / 5)
    assert first.points == 3 * 10 - 150


def test_a_tool_that_solves_nothing_has_no_median() -> None:
    (score,) = scores(runs(a=[record("1", "unknown")]))
    assert (score.median, score.par2) == (None, 20.0)
