"""The commands property, bounds and completion; help, JSON and packed files of the others."""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import vnnlib

from fgp_vnn.cli.main import COMMANDS, main, whole_parser
from fgp_vnn.property import load_property
from tests.helpers.places import BENCHMARK
from tests.helpers.small_networks import random_network, save_onnx


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A network and points with their classes, one of them wrong."""
    network = random_network((4, 6, 3), 2)
    save_onnx(network, tmp_path / "net.onnx")
    import torch

    x = np.random.default_rng(0).uniform(0, 1, (3, 4)).astype(np.float32)
    y = network(torch.from_numpy(x).double()).argmax(-1).numpy()
    y[2] = (y[2] + 1) % 3
    np.savez(tmp_path / "points.npz", x=x, y=y)
    return tmp_path / "net.onnx", tmp_path / "points.npz"


def answer(capsys: pytest.CaptureFixture[str], *argv: object) -> Any:
    """What a command prints as JSON."""
    assert main([str(a) for a in argv]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_property_writes_a_folder_that_bench_and_the_standard_read(
    files: tuple[Path, Path], tmp_path: Path, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "folder"
    options = ["--epsilon", "8/255", "0.5", "--clip", 0, 1, "--version", version, "--out", out]
    told = answer(capsys, "property", *files, *options, "--json")
    assert (told["instances"], told["left_out"]) == (4, 1)
    rows = [row.split(",") for row in (out / "instances.csv").read_text().split()]
    for network, prop, timeout in rows:
        assert (out / network).is_file() and float(timeout) == 60
        read = load_property(out / prop)
        assert read.version == version and len(read.cases[0].unsafe) == 2
        if version == "2.0":
            vnnlib.parse_query_string((out / prop).read_text().replace(" Real ", " real "))
    assert main(["bench", str(out), "--dry-run"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04junk", b"\x00" * 50])
def test_a_box_that_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    box, model = tmp_path / "box.npz", tmp_path / "model.onnx"
    model.touch()
    if content is not None:
        box.write_bytes(content)
    assert main(["bounds", str(model), str(box)]) == 2
    said = capsys.readouterr().err
    begin = f"{box}: " if content is not None else f"boxes file {box} does not exist"
    assert said.startswith(f"fgp-vnn: {begin}") and said.count("\n") == 1 and "Errno" not in said


def test_bounds_prints_ranges_and_a_maximum(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "box.npz", lower=np.zeros(4), upper=np.ones(4))
    box = files[0], tmp_path / "box.npz"
    ranges = answer(capsys, "bounds", *box, "--json", "--timeout", 60)
    assert all(
        low <= high for low, high in zip(ranges["lower"][0], ranges["upper"][0], strict=True)
    )
    best = answer(capsys, "bounds", *box, "--maximise", "0", "1", "-1", "--json")
    assert best["ended"] == "tight"
    assert best["upper"] <= best["value"] + 1e-4 * max(1, best["value"])
    assert main(["bounds", *map(str, box), "--layer", "0", "--method", "plain"]) == 0
    assert capsys.readouterr().out.startswith("0: ")
    assert main(["bounds", *map(str, box), "--maximise", "1", "0", "0", "--layer", "0"]) == 2


def test_json_of_supports_networks_check_and_the_points_of_certify(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, points = files
    told = answer(capsys, "networks", network, "--json")
    assert told[0]["inputs"] == 4 and told[0]["layers"] == [6]
    told = answer(capsys, "certify", network, points, "--epsilon", "1/100", "--json")
    assert [row["point"] for row in told["results"]] == [0, 1, 2]
    main(["property", *map(str, files), "--epsilon", "2", "--out", str(tmp_path / "p")])
    prop = next((tmp_path / "p" / "vnnlib").iterdir())
    capsys.readouterr()
    assert answer(capsys, "supports", network, prop, "--json")["supported"] is True
    bad = tmp_path / "bad.vnnlib"
    bad.write_text("(assert (>= X_0 X_1))")
    assert main(["supports", str(network), str(bad), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["supported"] is False and told["answer"].startswith("refused: ")
    results = tmp_path / "out.txt"
    assert main(["verify", str(network), str(prop), "--results", str(results)]) == 0
    capsys.readouterr()
    assert answer(capsys, "check", results, network, prop, "--json") == {
        "valid": True,
        "fault": None,
    }


def test_a_folder_has_the_weights_that_lie_beside_the_network(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, points = files
    model = onnx.load(network)
    (tmp_path / "big").mkdir()
    beside = tmp_path / "big" / "net.onnx"
    onnx.save(model, beside, save_as_external_data=True, size_threshold=0)
    assert len(list((tmp_path / "big").iterdir())) > 1
    out = tmp_path / "folder"
    assert main(["property", str(beside), str(points), "--epsilon", "0.1", "--out", str(out)]) == 0
    assert main(["networks", str(out / "onnx")]) == 0
    assert "1 can be read" in capsys.readouterr().out


def test_a_plain_name_stands_for_the_packed_file_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "dense_16x2_pgd"
    for kind, file in (("onnx", f"{name}.onnx"), ("vnnlib", f"{name}_untargeted_0.02.vnnlib")):
        with gzip.open(tmp_path / f"{file}.gz", "wb") as packed:
            packed.write((BENCHMARK / kind / file).read_bytes())
    plain = str(tmp_path / f"{name}.onnx"), str(tmp_path / f"{name}_untargeted_0.02.vnnlib")
    assert main(["supports", *plain]) == 0
    assert main(["verify", *plain]) == 0
    assert "unsat" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_a_sentence_for_every_option_and_an_example(command: str) -> None:
    parser = whole_parser([command])
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    chosen = commands.choices[command]
    assert f"fgp-vnn {command}" in str(chosen.epilog)
    for action in chosen._actions:
        assert action.help, action.dest
        if action.option_strings and not action.required and action.dest != "help":
            words = action.help % {"default": action.default}
            assert "(" in words and ")" in words, f"{action.dest}: what is its default?"
            told = words.rpartition("(")[2]
            assert "default" in told or "required" in told, action.dest


def test_verify_tells_its_story_on_standard_error_only(capsys: pytest.CaptureFixture[str]) -> None:
    name = "dense_16x2_pgd"
    files = (
        BENCHMARK / "onnx" / f"{name}.onnx",
        BENCHMARK / "vnnlib" / f"{name}_untargeted_0.02.vnnlib",
    )
    assert main(["verify", *map(str, files), "-v"]) == 0
    told = capsys.readouterr()
    assert "bound" in told.err and len(told.out.splitlines()) == 1
    assert main(["verify", *map(str, files)]) == 0
    assert capsys.readouterr().err == ""


def test_bash_completes_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("zsh", "fish"):
        assert main(["completion", shell]) == 0
    capsys.readouterr()
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    ask = 'COMP_WORDS=(fgp-vnn bounds --met); COMP_CWORD=2; _fgp_vnn; echo "${COMPREPLY[@]}"'
    done = subprocess.run(
        [bash, "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "--method"


def test_what_is_refused_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.onnx").touch()
    (tmp_path / "points.npz").touch()
    words = [str(tmp_path / "model.onnx"), str(tmp_path / "points.npz"), "--epsilon", "0.1"]
    assert main(["property", *words, "--out", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    assert main(["property", *words, "--out", str(tmp_path / "old")]) == 2
    assert (tmp_path / "old").is_dir()


@pytest.mark.parametrize(
    ("command", "given", "said"),
    [
        ("property", ["--monotone", "7"], "--monotone is 7; the inputs are numbered from 0 to 3"),
        ("property", ["--monotone", "0", "--output", "3"], "--output is 3; the outputs are"),
        ("property", ["--target", "12"], "--target names class 12; the classes are numbered from"),
        ("bounds", ["--layer", "12"], "--layer is 12; the network has activation layers 0 to"),
        ("bounds", ["--maximise", "1", "2"], "--maximise has 2 factors for 3 outputs"),
    ],
)
def test_a_number_out_of_range_names_its_option_and_leaves_no_folder(
    command: str,
    given: list[str],
    said: str,
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model, points = files
    box = tmp_path / "box.npz"
    np.savez(box, lower=np.zeros(4), upper=np.ones(4))
    near = "--target" in given
    more = ["--epsilon", "0.1"] if near else ["--tolerance", "0.1"]
    rest = [*more, "--out", str(tmp_path / "new")] if command == "property" else []
    assert main([command, str(model), str(points if near else box), *given, *rest]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"fgp-vnn: {said}") and err.count("\n") == 1
    assert not (tmp_path / "new").exists()
