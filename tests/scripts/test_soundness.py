"""The scripts that test the tests: exact comparison and mutation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mutate
import soundness
from mutation import Mutation
from mutations import MUTATIONS
from oracle.milp import Program
from tests.helpers.met import is_met
from tests.helpers.places import PACKAGE, TESTS
from tests.helpers.random_cases import (
    FAMILIES,
    exact_confirm,
    oracle,
    random_case,
    scaled,
    sliver,
    tie,
)
from tests.helpers.random_networks import exact_preactivations, rationals, sample


def test_a_program_without_constraints_is_solved_over_its_box() -> None:
    """That of a network all of whose neurons are off is one."""
    program = Program()
    program.variables(np.array([-1.0, 2.0]), np.array([3.0, 4.0]))
    assert program.minimise(np.array([1.0, -1.0])).fun == -5.0


def test_a_comparison_without_mistakes_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert soundness.main(["--cases", str(len(FAMILIES)), "--limit", "0.1"]) == 0
    assert "0 wrong verdicts" in capsys.readouterr().out


def test_a_wrong_engine_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soundness, "ENGINES", {"liar": lambda query, deadline: "unsat"})
    assert soundness.main(["--cases", "16", "--seed", "7"]) == 1
    assert "is sat: liar says unsat" in capsys.readouterr().out


def test_scaled_layers_leave_the_function_as_it_is() -> None:
    for seed in range(6):
        query = random_case(8 * seed).query
        again = scaled(query, seed)
        for point in sample(query.domain, 4, seed)[:4]:
            before, after = (
                exact_preactivations(q.network, rationals(point)) for q in (query, again)
            )
            assert before[-1] == after[-1]


def test_planted_counterexamples_are_there() -> None:
    for seed in range(6):
        query = sliver(8 * seed)
        assert oracle(query) == "sat"
        peak = query.network.layers[0].bias[: query.network.inputs]
        assert exact_confirm(query)(-peak.unsqueeze(0)) is not None
        assert not bool(is_met(query, query.network(sample(query.domain, 50, seed + 99))).any())
        assert oracle(tie(8 * seed)) != "unsat"


def test_a_mutation_whose_text_is_not_found_is_an_error() -> None:
    lost = Mutation("lost", "bounds/backward.py", "no such text", "", ())
    with pytest.raises(ValueError, match="occurs 0 times"):
        mutate.mutated(lost, "some other text")


def test_what_catches_a_mutation_is_named_with_its_brackets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutate, "run_tests", lambda *given: "a.py::t[red-1]")
    assert mutate.report([Mutation("one", "m.py", "", "", ())], tmp_path, baseline=False) == 0
    assert capsys.readouterr().out.count("a.py::t[red-1]") == 2  # at once, and in the table


def test_every_mutation_applies_to_the_package_as_it_is() -> None:
    assert len(MUTATIONS) >= 12
    for mutation in MUTATIONS:
        text = (PACKAGE / mutation.file).read_text(encoding="utf-8")
        assert mutation.new in mutate.mutated(mutation, text)
        for path, _, name in (test.partition("::") for test in mutation.tests):
            assert f"def {name}" in (TESTS / path).read_text(encoding="utf-8")
