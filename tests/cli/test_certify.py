"""fgp-vnn certify: its files, and what a user can get wrong."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.robustness import Doubles, Robustness
from fgp_vnn.cli.main import main
from tests.helpers.command_line import one_clear_line
from tests.helpers.small_networks import random_network, random_point, save_onnx


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_onnx(random_network((4, 6, 5, 3), 0), tmp_path / "net.onnx")


def write_points(folder: Path, suffix: str) -> Path:
    x = np.stack([random_point(4, seed) for seed in range(5)])
    y = np.array([0, 1, 2, 0, 1])
    path = folder / f"points{suffix}"
    if suffix == ".npz":
        np.savez(path, x=x, y=y)
    elif suffix == ".npy":
        np.save(path, x)
    else:
        lines = [
            ",".join(map(repr, [int(c), *map(float, row)])) for c, row in zip(y, x, strict=True)
        ]
        path.write_text("label,a,b,c,d\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv"])
def test_the_command_reads_each_format(
    model: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    points = write_points(tmp_path, suffix)
    assert main(["certify", str(model), str(points), "--epsilon", "0.1", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["points"] == 5
    assert ("vra" in summary) == (suffix != ".npy")
    if "vra" in summary:
        assert summary["vra"] <= summary["vra_upper_bound"] <= summary["accuracy"]


def test_the_attack_on_what_stays_open_is_within_the_time_of_its_point(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, float] = {}

    def certify(self: Certifier, x: Doubles, *, timeout: float, **rest: Any) -> Robustness:
        given["certify"] = timeout
        return Robustness("timeout", 0)

    def attack(self: Certifier, x: Doubles, *, timeout: float, **rest: Any) -> None:
        given["attack"] = timeout

    monkeypatch.setattr(Certifier, "certify", certify)
    monkeypatch.setattr(Certifier, "attack", attack)
    points = str(write_points(tmp_path, ".npy"))
    options = ["--epsilon", "0.1", "--timeout", "8", "--first", "1"]
    assert main(["certify", str(model), points, *options]) == 0
    assert 0 < given["certify"] < 8 and 0 < given["attack"] <= 8


@pytest.mark.parametrize("command", [("certify", "--epsilon"), ("radius", "--max")])
def test_a_ball_whose_sums_overflow_is_refused(
    command: tuple[str, str], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = str(write_points(tmp_path, ".npy"))
    assert main([command[0], str(model), points, command[1], "1e308"]) == 2
    one_clear_line(capsys.readouterr().err, ("1e+308", "at most 1e+300"))


def test_an_interrupt_shows_what_is_done(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[int] = []

    def certify(self: Certifier, x: Doubles, **rest: Any) -> Robustness:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(1)
        return Robustness("robust", 0, decided_by="bounds")

    monkeypatch.setattr(Certifier, "certify", certify)
    points, output = write_points(tmp_path, ".npz"), tmp_path / "out.csv"
    words = ["certify", str(model), str(points), "--epsilon", "0.1", "--output", str(output)]
    assert main(words) == 130
    said = capsys.readouterr()
    assert said.out.startswith("2 points: 2 robust,") and "--resume" in said.err


def test_a_point_outside_of_the_clip_box_is_refused_before_the_work_and_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = tmp_path / "points.npy"
    np.save(points, np.array([[0.5] * 4, [0.5, 2.0, 0.5, 0.5]]))
    said = []
    for command in (["certify", "--epsilon", "0.1"], ["radius", "--max", "0.1"]):
        words = [command[0], str(model), str(points), *command[1:], "--clip", "0", "1"]
        assert main([*words, "--norm", "linf"]) == 2
        said.append(capsys.readouterr())
    assert said[0] == said[1] and "point 1: " in said[0].err and said[0].out == ""


def test_why_points_are_not_decided_is_said(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = write_points(tmp_path, ".npz")
    words = ["certify", str(model), str(points), "--epsilon", "0.8", "--engine", "bounds"]
    assert main([*words, "--first", "1"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("1 point: ") and "1 unknown" in first
    assert second == "not decided, 1 point: linear bounds leave it open"


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_an_interrupted_run_goes_on_where_it_was(
    model: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    points = write_points(tmp_path, ".npz")
    output = tmp_path / f"out{suffix}"
    command = ["certify", str(model), str(points), "--epsilon", "0.1", "--output", str(output)]
    assert main([*command, "--first", "2"]) == 0
    assert main(command) == 2
    assert "--resume" in capsys.readouterr().err
    with output.open("a") as file:
        file.write('{"point": 2, "sta')  # a line that was cut off
    assert main([*command, "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["points"] == 5
    text = output.read_text().splitlines()
    rows = list(csv.DictReader(text)) if suffix == ".csv" else [json.loads(t) for t in text]
    assert [int(row["point"]) for row in rows] == [0, 1, 2, 3, 4]
    for row in rows:
        assert bool(row.get("counterexample")) == (row["status"] == "not_robust")


CHANGES = {
    "--epsilon 0.2": "begun with epsilon 0.1, now 0.2",
    "--norm linf": "begun with norm l2, now linf",
    "--clip 0 1": "begun with clip not given, now 0.0 1.0",
    "--timeout 7": "begun with timeout not given, now 7.0",
    "--engine walk": "begun with options seed=1, now engine=walk seed=1",
    "--seed 0": "begun with options seed=1, now not given",
    "--without combined": "begun with options seed=1, now combined=False seed=1",
}


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_a_file_of_other_settings_is_not_gone_on_with(
    model: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / f"out{suffix}"
    command = ["certify", str(model), str(write_points(tmp_path, ".npz")), "--epsilon", "0.1"]
    command += ["--seed", "1", "--first", "1", "--output", str(output)]
    assert main(command) == 0
    before = output.read_text()
    for change, words in CHANGES.items():
        assert main([*command, "--resume", *change.split()]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and words in error
        assert output.read_text() == before


def test_what_changes_no_result_may_change_in_between(model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    command = ["certify", str(model), str(write_points(tmp_path, ".npz")), "--epsilon", "0.1"]
    command += ["--output", str(output), "--without", "combined", "--without", "signed"]
    assert main([*command, "--first", "1"]) == 0
    other = [*command[:-4], "--without", "signed", "--without", "combined", "--device", "cpu"]
    assert main([*other, "--resume"]) == 0
    assert len(output.read_text().splitlines()) == 6


def test_a_file_of_other_inputs_is_not_gone_on_with(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.csv"
    points = write_points(tmp_path, ".npz")
    command = ["certify", str(model), str(points), "--epsilon", "0.1", "--output", str(output)]
    assert main([*command, "--first", "1"]) == 0
    np.savez(points, x=np.zeros((5, 4)))
    assert main([*command, "--resume"]) == 2
    assert "begun with data " in capsys.readouterr().err
    save_onnx(random_network((4, 6, 5, 3), 1), model)
    assert main([*command, "--resume"]) == 2
    assert "begun with network " in capsys.readouterr().err


def test_switching_a_heuristic_off_changes_no_answer(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = str(write_points(tmp_path, ".npz"))
    command = ["certify", str(model), points, "--epsilon", "0.1", "--engine", "walk", "--json"]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    for heuristic in ("combined", "signed", "stable", "reduce", "cache_first"):
        assert main([*command, "--without", heuristic, "--batch", "1"]) == 0
        second = json.loads(capsys.readouterr().out)
        assert first["robust"] == second["robust"], heuristic
        assert first["not_robust"] == second["not_robust"], heuristic


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("points.txt", "1"),
        ("points.csv", "1,2\n1,2,3\n"),
        ("points.csv", "a,b\n"),
        ("points.csv", "1,2,x,4\n"),
        ("points.npy", "no array"),
        ("points.npz", "no archive"),
        ("missing.npy", None),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(
    model: Path,
    tmp_path: Path,
    name: str,
    content: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert main(["certify", str(model), str(path), "--epsilon", "0.1"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and name in error


@pytest.mark.parametrize("command", ["certify", "radius", "property"])
@pytest.mark.parametrize("wrong", [3, -1])
def test_classes_that_the_network_does_not_have_are_refused(
    command: str, wrong: int, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "p.npz", x=random_point(4, 0)[None], y=np.array([wrong]))
    more = [] if command == "radius" else ["--epsilon", "0.1"]
    more += ["--out", str(tmp_path / "out")] if command == "property" else []
    assert main([command, str(model), str(tmp_path / "p.npz"), *more]) == 2
    assert "between 0 and 2" in capsys.readouterr().err
