"""The scripts that set our results beside the published ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import paper_tables
import walk_speed
from paper_results import NETWORKS, Published


def test_published_counts_add_up_to_the_hundred_points() -> None:
    for name, network in NETWORKS.items():
        for tool, figures in {**network.l2, **network.linf}.items():
            total = figures.robust + figures.not_robust + figures.unknown + figures.timeout
            assert total == 100, (name, tool)


def test_a_time_above_the_budget_is_shown_as_such() -> None:
    assert str(Published(None, 0, 0, 0, 100, 0.0)) == "0/0/0/100, >120 s, VRA 0.00"
    assert str(Published(0.012, 87, 8, 4, 1)) == "87/8/4/1, 0.012 s"


@pytest.mark.slow
def test_tables_are_written_and_finished_points_are_kept(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [str(shared_data / "paper"), "--networks", "mnist20x3", "--output", str(tmp_path)]
    assert paper_tables.main([*command, "--points", "2"]) == 0
    first = (tmp_path / "l2-mnist20x3-ours.csv").read_text()
    assert paper_tables.main([*command, "--points", "3"]) == 0
    text = (tmp_path / "tables.md").read_text()
    assert "87/8/4/1, 0.012 s, VRA 0.82" in text
    assert (tmp_path / "l2-mnist20x3-ours.csv").read_text().startswith(first)
    assert "mnist20x3" in capsys.readouterr().out


@pytest.mark.slow
def test_speed_is_given_for_both_walks(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(shared_data / "paper")
    options = ["--networks", "mnist20x3", "--points", "2", "--seconds", "1"]
    assert walk_speed.main([folder, *options]) == 0
    assert "mnist20x3" in capsys.readouterr().out
