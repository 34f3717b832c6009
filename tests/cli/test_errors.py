"""One clear line for everything that is wrong with the input, and exit code 2."""

from __future__ import annotations

import gzip
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.cli.main import main
from tests.helpers.command_line import (
    MODEL,
    SAFE,
    no_network,
    one_clear_line,
    run,
    small_model,
    small_property,
)

Damage = Callable[[Path], list[str | Path]]

# What is wrong, the arguments that show it, and words of the line that says so.


def missing_model(folder: Path) -> list[str | Path]:
    return [folder / "none.onnx", SAFE]


def missing_property(folder: Path) -> list[str | Path]:
    return [MODEL, folder / "none.vnnlib"]


def directory(folder: Path) -> list[str | Path]:
    return [folder, SAFE]


def directory_of_properties(folder: Path) -> list[str | Path]:
    return [MODEL, folder]


def truncated_gzip(folder: Path) -> list[str | Path]:
    path = folder / "half.onnx.gz"
    path.write_bytes(gzip.compress(MODEL.read_bytes())[:-500])
    return [path, SAFE]


def truncated_property(folder: Path) -> list[str | Path]:
    path = folder / "half.vnnlib.gz"
    path.write_bytes(gzip.compress(SAFE.read_bytes())[:-50])
    return [MODEL, path]


def external_data(folder: Path) -> list[str | Path]:
    import onnx

    model = onnx.load(str(MODEL))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    path = folder / "external.onnx"
    path.write_bytes(model.SerializeToString())
    return [path, SAFE]


def not_a_number(folder: Path) -> list[str | Path]:
    return [small_model(folder, weight=np.nan), small_property(folder)]


def infinite_weight(folder: Path) -> list[str | Path]:
    return [small_model(folder, weight=np.inf), small_property(folder)]


def too_many_inputs(folder: Path) -> list[str | Path]:
    return [small_model(folder), small_property(folder, inputs=5)]


def too_few_outputs(folder: Path) -> list[str | Path]:
    return [small_model(folder), small_property(folder, outputs=1)]


def another_network(folder: Path) -> list[str | Path]:
    return [MODEL, small_property(folder)]


def syntax_error(folder: Path) -> list[str | Path]:
    path = folder / "broken.vnnlib"
    path.write_text(SAFE.read_text().replace("(assert", "(asert", 1))
    return [MODEL, path]


def open_parenthesis(folder: Path) -> list[str | Path]:
    path = folder / "open.vnnlib"
    path.write_text(SAFE.read_text().rstrip()[:-1])
    return [MODEL, path]


def results_in_no_folder(folder: Path) -> list[str | Path]:
    return [MODEL, SAFE, "--results", folder / "none" / "out.txt"]


def results_is_a_directory(folder: Path) -> list[str | Path]:
    return [MODEL, SAFE, "--results", folder]


def negative_timeout(folder: Path) -> list[str | Path]:
    return [MODEL, SAFE, "--timeout", "-5"]


BAD: list[tuple[Damage, tuple[str, ...]]] = [
    (missing_model, ("none.onnx", "does not exist")),
    (missing_property, ("none.vnnlib", "does not exist")),
    (directory, ("directory",)),
    (directory_of_properties, ("directory",)),
    (truncated_gzip, ("half.onnx.gz", "gzip")),
    (truncated_property, ("half.vnnlib.gz", "gzip")),
    (no_network, ("text.onnx", "not an ONNX file")),
    (external_data, ("external.onnx", "weights.bin")),
    (not_a_number, ("small.onnx", "finite")),
    (infinite_weight, ("small.onnx", "finite")),
    (too_many_inputs, ("5 inputs", "small.onnx", "has 4")),
    (too_few_outputs, ("1 output,", "has 2")),
    (another_network, ("small.vnnlib", "dense_16x2_standard.onnx")),
    (syntax_error, ("broken.vnnlib", "asert")),
    (open_parenthesis, ("open.vnnlib",)),
    (results_in_no_folder, ("none", "does not exist")),
    (results_is_a_directory, ("directory",)),
    (negative_timeout, ("--timeout", "-5", "positive")),
]


@pytest.mark.parametrize(("damage", "words"), BAD, ids=[b[0].__name__ for b in BAD])
def test_bad_input_is_one_clear_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Damage, words: tuple[str, ...]
) -> None:
    arguments = damage(tmp_path)
    results = tmp_path / "results.txt"
    results.write_text("unsat\n")
    if "--results" not in arguments:
        arguments += ["--results", results]
    assert main(["verify", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    one_clear_line(err, words)
    assert out == ""
    assert results.read_text() == "unsat\n"  # of an earlier run, and still there
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("damage", "words"), [BAD[0], BAD[13]], ids=lambda b: getattr(b, "__name__", "")
)
def test_bad_input_looks_the_same_from_outside(
    tmp_path: Path, damage: Damage, words: tuple[str, ...], warm_command: list[str]
) -> None:
    done = run(warm_command, "verify", *damage(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    one_clear_line(done.stderr, words)


@pytest.mark.parametrize("damage", [missing_model, no_network, too_many_inputs, syntax_error])
def test_supports_declines_what_verify_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Damage
) -> None:
    assert main(["supports", *map(str, damage(tmp_path))]) == 2
    one_clear_line(capsys.readouterr().err, ())


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["verify"],
        ["verify", "a.onnx"],
        ["prove", "a", "b"],
        ["verify", "a", "b", "--engine", "x"],
    ],
)
def test_a_wrong_command_line_is_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    one_clear_line(capsys.readouterr().err, ("--help",))


@pytest.mark.parametrize("command", ["verify", "certify", "radius", "bounds", "bench"])
def test_too_little_memory_is_refused_with_the_least_amount(
    command: str, usual: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, *usual[command], "--memory", "0.001"]) == 2
    one_clear_line(capsys.readouterr().err, ("--memory: '0.001' is not", "gigabytes from 0.3"))


@pytest.mark.parametrize("option", ["--timout", "--timout=5"])
def test_a_misspelt_option_is_answered_with_the_right_one(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "a.onnx", "b.vnnlib", option]) == 2
    one_clear_line(
        capsys.readouterr().err,
        (option, "did you mean '--timeout'?", "see fgp-vnn verify --help"),
    )


@pytest.mark.parametrize(
    ("command", "option"), [("radius", "--epsilon"), ("verify", "--out"), ("property", "--points")]
)
def test_an_option_of_another_command_is_not_taken_for_one_that_is_spelt_otherwise(
    command: str, option: str, usual: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, *usual[command], option, "1"]) == 2
    one_clear_line(capsys.readouterr().err, (f"unrecognized arguments: {option} 1 (see",))


@pytest.mark.parametrize("command", ["verify", "supports", "bench"])
def test_a_name_that_begins_as_a_list_of_networks_is_a_file(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    warm_python: str,
) -> None:
    monkeypatch.setattr("sys.executable", warm_python)  # that of workers
    monkeypatch.chdir(tmp_path)
    Path("[odd]").mkdir()
    Path("[odd]", "[a].onnx").write_bytes(MODEL.read_bytes())
    Path("[odd]", "p.vnnlib").write_bytes(SAFE.read_bytes())
    Path("[odd]", "instances.csv").write_text("[a].onnx,p.vnnlib,60\n".replace("[a]", "./[a]"))
    given = ["[odd]"] if command == "bench" else ["[odd]/[a].onnx", "[odd]/p.vnnlib"]
    assert main([command, *given]) == 0
    said = capsys.readouterr().out
    assert "unsat" in said or "supported" in said


def test_a_file_in_the_place_of_a_folder_is_said_to_be_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_text("mine")
    assert main(["demo", "--files", str(tmp_path / "out")]) == 2
    one_clear_line(capsys.readouterr().err, ("out", "cannot be written", "a file has this name"))


def test_an_unwritable_folder_is_refused(tmp_path: Path, warm_command: list[str]) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    done = run(warm_command, "verify", MODEL, SAFE, "--results", folder / "out.txt")
    folder.chmod(stat.S_IRWXU)
    assert done.returncode == 2
    one_clear_line(done.stderr, ("out.txt",))


@pytest.mark.parametrize("solver", ["highspy", "clarabel"])
@pytest.mark.parametrize("command", ["verify", "certify"])
def test_without_a_solver_the_extra_is_named(
    command: str,
    solver: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, solver, None)
    points = tmp_path / "points.npy"
    np.save(points, np.zeros((1, 64), np.float32))
    rest = [str(SAFE)] if command == "verify" else [str(points), "--epsilon", "0.01"]
    assert main([command, str(MODEL), *rest]) == 0
    capsys.readouterr()
    assert main([command, str(MODEL), *rest, "--lp"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "pip install 'fgp-vnn[lp]'" in error
