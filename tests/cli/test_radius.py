"""fgp-vnn radius: a data set at once, its files, and what a user can get wrong."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from fgp_vnn.api.certify import Certifier
from fgp_vnn.cli.main import main
from tests.helpers.small_networks import random_network, random_point, save_onnx

POINTS = 3


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save_onnx(random_network((4, 6, 5, 3), 0), tmp_path / "net.onnx")


@pytest.fixture
def points(tmp_path: Path) -> Path:
    path = tmp_path / "points.npz"
    x = np.stack([random_point(4, seed) for seed in range(POINTS)])
    np.savez(path, x=x, y=np.arange(POINTS))
    return path


@pytest.fixture
def command(model: Path, points: Path) -> list[str]:
    return ["radius", str(model), str(points), "--max", "0.5", "--timeout", "20"]


def read(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines()
    if path.suffix == ".csv":
        return list(csv.DictReader(lines))
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("norm", ["l2", "linf", "l1"])
def test_every_point_has_a_line_and_the_end_a_summary(
    command: list[str], norm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--norm", norm]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:POINTS]] == [f"point {n}" for n in range(POINTS)]
    assert lines[POINTS].startswith(f"{POINTS} points: ")
    assert any(line.startswith("accuracy ") for line in lines)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_rows_hold_the_bounds_their_evidence_and_the_settings(
    command: list[str],
    points: Path,
    tmp_path: Path,
    suffix: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / f"out{suffix}"
    assert main([*command, "--output", str(output), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    rows = read(output)
    assert summary["points"] == len(rows) == POINTS
    assert [row["lower"] for row in summary["results"]] == [float(row["lower"]) for row in rows]
    x = np.load(points)["x"]
    for row in rows:
        assert 0 <= float(row["lower"]) <= 0.5
        assert (row["norm"], float(row["max"]), row["engine"]) == ("l2", 0.5, "auto")
        if row.get("counterexample"):
            found = row["counterexample"]
            found = found.split() if isinstance(found, str) else found
            distance = np.linalg.norm(np.array(found, float) - x[int(row["point"])])
            assert distance <= float(row["upper"])
            assert int(row["counterexample_label"]) != int(row["label"])
    assert summary["mean_lower"] == pytest.approx(np.mean([float(row["lower"]) for row in rows]))


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_a_run_that_was_cut_off_goes_on(
    command: list[str], tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / f"out{suffix}"
    full = [*command, "--output", str(output)]
    assert main([*full, "--first", "1"]) == 0
    begun = output.read_text()
    assert main(full) == 2
    assert "--resume" in capsys.readouterr().err
    with output.open("a") as file:
        file.write('{"point": 1, "low')
    assert main([*full, "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["points"] == POINTS
    assert output.read_text().startswith(begun)
    assert [int(row["point"]) for row in read(output)] == list(range(POINTS))


CHANGES = {
    "--max 0.4": "begun with max 0.5, now 0.4",
    "--norm linf": "begun with norm l2, now linf",
    "--exact": "begun with gap 0.01, now exact",
    "--engine walk": "begun with engine auto, now walk",
    "--clip 0 1": "begun with clip not given, now 0.0 1.0",
    "--timeout 7": "begun with timeout 20.0, now 7.0",
}


def test_a_file_of_other_settings_or_another_network_is_not_gone_on_with(
    command: list[str], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.csv"
    full = [*command, "--first", "1", "--output", str(output)]
    assert main(full) == 0
    before = output.read_text()
    for change, words in CHANGES.items():
        assert main([*full, "--resume", *change.split()]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and words in error
        assert output.read_text() == before
    save_onnx(random_network((4, 6, 5, 3), 1), model)
    assert main([*full, "--resume"]) == 2
    assert "begun with network " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("out.csv", "a,b\n1,2\n", "begun with network not given"),
        ("out.json", "5\n", "cannot resume from this file"),
        ("out.json", "{]\n", "cannot resume from this file"),
    ],
)
def test_a_file_of_something_else_is_not_gone_on_with(
    command: list[str],
    tmp_path: Path,
    name: str,
    text: str,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / name
    output.write_text(text)
    assert main([*command, "--output", str(output), "--resume"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and words in error
    assert output.read_text() == text


def test_a_header_that_was_cut_off_is_written_again(command: list[str], tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    output.write_text("point,y,la")
    assert main([*command, "--first", "1", "--output", str(output), "--resume"]) == 0
    assert [row["point"] for row in read(output)] == ["0"]


def test_an_interrupt_loses_nothing(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        asked.append(arguments)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return radius(*arguments, **options)

    radius = Certifier.radius
    monkeypatch.setattr(Certifier, "radius", interrupted)
    output, page = tmp_path / "out.csv", tmp_path / "page.html"
    full = [*command, "--output", str(output), "--report", str(page)]
    assert main(full) == 130
    out, err = capsys.readouterr()
    assert "1 point: " in out
    assert "resume with --resume" in err and err.endswith("fgp-vnn: interrupted\n")
    assert len(read(output)) == 1
    assert page.read_text().count("<tr data-results=") == 1
    assert main([*full, "--resume"]) == 0
    assert [int(row["point"]) for row in read(output)] == list(range(POINTS))
    assert page.read_text().count("<tr data-results=") == POINTS


def test_a_point_that_cannot_be_used_is_named_and_the_others_are_kept(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.stack([random_point(4, 0), np.full(4, 3e38)])
    np.save(tmp_path / "x.npy", x)
    output = tmp_path / "out.csv"
    command = ["radius", str(model), str(tmp_path / "x.npy"), "--max", "0.5"]
    assert main([*command, "--output", str(output)]) == 2
    out, err = capsys.readouterr()
    assert "1 point: " in out and "point 1: the network's output at the input is not finite" in err
    assert [row["point"] for row in read(output)] == ["0"]


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_the_picture_is_in_the_format_of_its_name(
    command: list[str], tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"radii{suffix}"
    assert main([*command, "--plot", str(path)]) == 0
    starts = {".png": b"\x89PNG", ".pdf": b"%PDF"}
    assert path.read_bytes().startswith(starts[suffix])
    if suffix == ".png":
        image = np.asarray(imread(path))
        assert image.shape[1] > image.shape[0] > 500
        assert image[:, : image.shape[1] // 2].std() > 0.05 < image[:, image.shape[1] // 2 :].std()


def test_the_page_holds_the_numbers_of_the_table(command: list[str], tmp_path: Path) -> None:
    output, page = tmp_path / "out.csv", tmp_path / "page.html"
    assert main([*command, "--output", str(output), "--report", str(page)]) == 0
    text = page.read_text()
    for row in read(output):
        assert f">{float(row['lower']):.6g}<" in text
    for words in ("net.onnx", "points.npz", "hidden layers", "2 (6, 5)", "Certified accuracy"):
        assert words in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--max", "0"], "--max: '0' is not a positive number"),
        (["--gap", "1"], "--gap is 1.0"),
        (["--clip", "0", "0.1"], "point 0: the input has values from"),
        (["--first", "0"], "--first: '0' is not a positive whole number"),
        (["--plot", "radii.gif"], "pictures are written as .png, .svg, .pdf"),
        (["--plot", "nowhere/radii.png"], "the folder nowhere does not exist"),
        (["--report", "nowhere/page.html"], "the folder nowhere does not exist"),
        (["--report", "page.txt"], "a page is written as .html, .htm"),
        (["--output", "radii.txt"], "results are written as"),
        (["--resume"], "name it with --output"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_code_2(
    command: list[str], change: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, *change]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and words in err


def test_missing_matplotlib_is_said_before_the_work(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main([*command, "--plot", str(tmp_path / "radii.png")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "pip install 'fgp-vnn[report]'" in err
