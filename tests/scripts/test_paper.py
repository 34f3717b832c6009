"""The scripts that set our results beside the published ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

import paper_tables
import radius_table
import walk_speed
from fgp_vnn.report.radius_set import PointRadius
from paper_results import LOWER_BOUNDS, NETWORKS, Published
from training.architectures import build


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
    assert paper_tables.main([*command, "--budget", "7"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "begun with timeout 30.0, now 7.0" in error


@pytest.mark.slow
def test_speed_is_given_for_both_walks(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(shared_data / "paper")
    options = ["--networks", "mnist20x3", "--points", "2", "--seconds", "1"]
    assert walk_speed.main([folder, *options]) == 0
    assert "mnist20x3" in capsys.readouterr().out


def bound(lower: float, *, tight: bool = False) -> PointRadius:
    return PointRadius(0, 1, 1, lower, 1.0, "tight" if tight else "timeout", "split", 60.0)


def test_lower_bounds_stand_beside_the_published_ones_with_ratios_point_by_point() -> None:
    lowers = ((0.05, 0.1, 0.1), (0.15, 0.1, 0.3), (0.1, 0.2, 0.8))
    triples = [
        radius_table.Triple(fastlin, bound(crown), bound(ours, tight=ours > 0.5))
        for fastlin, crown, ours in lowers
    ]
    text = radius_table.table({"500x4": triples}, "l2", 60.0)
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if "500x4" in line]
    assert rows[0] == ["fmnist500x4", "0.124", "0.078", "0.329"]
    expected = ["0.4", "0.1333", "0.333", "0.1", "0.500", "3.00", "1.00", "10.00", "1 of 3"]
    assert rows[1] == ["500x4", *expected]
    assert "Published" in text and "not by its authors'" in text
    assert radius_table.Triple(0.0, bound(0.0), bound(0.0)).ratio == 1


def test_published_ratios_are_those_of_the_smaller_to_the_larger_bound() -> None:
    for figures in LOWER_BOUNDS.values():
        assert 0 < figures.median_ratio < 1 and figures.fastlin_mean < figures.fgp_mean


def test_the_sizes_of_the_table_can_be_built() -> None:
    for name in LOWER_BOUNDS:
        width, depth = map(int, name.split("x"))
        layers = [layer for layer in build(name, (1, 8, 8), 10) if isinstance(layer, nn.Linear)]
        assert [layer.out_features for layer in layers] == [width] * depth + [10]


def test_networks_of_a_size_are_trained_once_and_both_engines_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [str(tmp_path), "--networks", "8x2", "--method", "standard", "--epochs", "2"]
    command += ["--timeout", "5", "--max", "0.5"]
    assert radius_table.main([*command, "--points", "1"]) == 0
    model = tmp_path / "dense_8x2_standard.onnx"
    begun = {path.name: path.read_bytes() for path in (model, tmp_path / "8x2-bounds.csv")}
    assert radius_table.main([*command, "--points", "2"]) == 0
    for name, content in begun.items():
        assert (tmp_path / name).read_bytes().startswith(content)
    assert (tmp_path / "table.md").read_text().count("\n| 8x2 | ") == 1
    assert "8x2" in capsys.readouterr().out
    assert radius_table.main([*command, "--timeout", "6"]) == 2
    assert "begun with timeout 5.0, now 6.0" in capsys.readouterr().err
