"""The script that says what each number of the strategy is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import strategy as script
from fgp_vnn.strategy import Neurons, Strategy


def test_every_number_of_the_strategy_is_changed_and_no_other_with_it() -> None:
    before = dict(script.numbers(Strategy()))
    changed = set()
    for change in script.changes(Strategy()):
        after = dict(script.numbers(change.applied(Strategy())))
        assert {path for path in before if before[path] != after[path]} == {change.path}
        changed.add(change.path)
    assert {path for path in before if path not in changed} == {
        *(("attack", name, "seed") for name in ("quick", "long", "in_boxes")),
        ("attack", "blind", "descent", "seed"),
    }


def test_reads_are_noted_by_their_paths_also_of_a_copy() -> None:
    seen: set[tuple[str, ...]] = set()
    watched = script.reading(Strategy(), seen)
    assert watched.short.batch == Neurons.batch and ("short", "batch") in seen
    assert ("walk", "few_neurons") not in seen
    other = replace(watched, neurons=watched.short)
    assert other.walk.few_neurons == Strategy().walk.few_neurons
    assert ("walk", "few_neurons") in seen


def test_a_number_is_timed_against_the_default_or_said_to_be_unused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--filter", "dense_16x2_pgd_untargeted_0.02", "--all"]
    assert script.main([*words, "--fields", "quick.steps", "radius.usual"]) == 0
    lines = capsys.readouterr().out.splitlines()
    steps = [line.split() for line in lines if line.startswith("attack.quick.steps")]
    assert [line[1] for line in steps] == ["halved", "doubled"]
    assert all(float(line[3]) > 0 and line[4] == "-" for line in steps)
    usual = [line for line in lines if line.startswith("radius.usual")]
    assert len(usual) == 2 and all(line.endswith("unused") for line in usual)


def test_a_folder_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--folder", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
