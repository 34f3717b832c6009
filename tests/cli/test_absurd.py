"""Every option of every command with values that make no sense, and every output that fails.

Always one clear line and the exit code that is documented, never a traceback, and nothing is lost
that was there before.
"""

from __future__ import annotations

import argparse
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from fgp_vnn.cli.main import COMMANDS, main
from tests.helpers.bench_folders import make_folder
from tests.helpers.command_line import COMMAND, ENVIRONMENT, MODEL, SAFE, one_clear_line

HUGE = "9" * 40
NO_NUMBER = ["", "nan", "-nan", "inf", "-inf", "1e400", "-1", "x", "0x10", "1,5"]
NO_COUNT = ["", "nan", "inf", "1e3", "0", "-1", "x", HUGE, "9" * 5000]
VALUES: dict[str, list[str]] = {
    "seconds": [*NO_NUMBER, "0", "1e300"],
    "gigabytes": [*NO_NUMBER, "0", "1e300"],
    "positive": [*NO_NUMBER, "0"],
    "radius": NO_NUMBER,
    "finite": ["", "nan", "inf", "-inf", "1e400", "x"],
    "count": NO_COUNT,
    "threads": [*NO_COUNT, "99999999999", "1000"],
    "seed": ["", "nan", "1e3", "-1", "x", HUGE, "9" * 5000],
    "int": ["", "nan", "1e3", "x"],
}
FREE = ["--filter", "--verifier", "--cluster", "--ours", "--tool", "--results"]  # any text
# Those whose value is a file that the command writes, or a folder.
WRITTEN = {
    "verify": ["--results", "--certificate"],
    "certify": ["--output"],
    "radius": ["--output", "--plot", "--report"],
    "bench": ["--out"],
    "compare": ["--out"],
}
SUFFIX = {"--output": ".csv", "--plot": ".png", "--report": ".html"}


@pytest.fixture
def usual(tmp_path: Path) -> dict[str, list[str]]:
    """Arguments of each command that are in order, and of a run that is short."""
    points = tmp_path / "points.npy"
    np.save(points, np.full((2, 64), 0.5, np.float32))
    folder = make_folder(tmp_path / "cat", ["unsat", "unsat"])
    table = tmp_path / "published.csv"
    table.write_text("cat,onnx/0-unsat.onnx,vnnlib/prop.vnnlib,0.0,unsat,0.1\n")
    results = tmp_path / "sat.txt"
    results.write_text("sat\n")
    pair, out = [str(MODEL), str(SAFE)], str(tmp_path / "out")
    return {
        "verify": pair,
        "certify": [str(MODEL), str(points), "--epsilon", "0.01", "--first", "1"],
        "radius": [str(MODEL), str(points), "--engine", "bounds", "--max", "0.1", "--first", "1"],
        "supports": pair,
        "networks": [str(MODEL)],
        "bench": [str(folder), "--verifier", "tests.bench.verifiers:by_name", "--out", out],
        "compare": [str(folder), "--results", f"a={table}", "--out", out],
        "report": [out],
        "check": [str(results), *pair],
        "check-certificate": [str(points), *pair],
    }


def options(command: str) -> Iterator[argparse.Action]:
    parser = argparse.ArgumentParser()
    import_module(f"fgp_vnn.cli.{command.replace('-', '_')}").add_arguments(parser)
    yield from (action for action in parser._actions if action.option_strings)


def bad_values() -> Iterator[tuple[str, str, list[str]]]:
    """Command, option and values; whatever has a type is in the table above, or this fails."""
    for command in COMMANDS:
        for action in options(command):
            option = action.option_strings[-1]
            if action.choices is not None:
                yield command, option, ["", "x"]
            elif action.nargs == 0 or option in FREE or action.type is Path:
                continue
            else:
                name = getattr(action.type, "__name__", "")
                assert name in VALUES, f"{command} {option}: no bad values of {action.type}"
                yield command, option, VALUES[name]


BAD = [(command, option, value) for command, option, vs in bad_values() for value in vs]


@pytest.mark.parametrize(("command", "option", "value"), BAD)
def test_a_value_that_makes_no_sense_is_one_line_and_exit_code_2(
    command: str,
    option: str,
    value: str,
    usual: dict[str, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sorted(tmp_path.rglob("*"))
    values = [value, "0"] if option == "--clip" else [value]
    arguments = [option, *values] if value[:1] != "-" else [f"{option}={value}", *values[1:]]
    assert main([command, *usual[command], *arguments]) == 2
    out, err = capsys.readouterr()
    one_clear_line(err, (option,))
    assert out == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("command", "arguments", "word"),
    [
        ("verify", ["--engine", "split", "--variant", "first-boundary"], "variant"),
        ("verify", ["--engine", "split", "--no-alternate"], "alternate"),
        ("verify", ["--engine", "bounds", "--lp"], "lp"),
        ("verify", ["--engine", "attack", "--no-attack"], "attack"),
        ("verify", ["--engine", "walk", "--float32-semantics"], "float32"),
        ("verify", ["--device", "mps"], "mps"),
        ("certify", ["--precision", "float32"], "--precision"),
        ("certify", ["--device", "mps"], "mps"),
        ("certify", ["--engine", "split", "--batch", "7"], "batch"),
        ("certify", ["--without", "stable"], "stable"),
        ("certify", ["--clip", "1", "0"], "clip"),
        ("certify", ["--clip", "0"], "--clip"),
        ("certify", ["--resume"], "--output"),
        ("radius", ["--lp"], "--lp"),
        ("radius", ["--gap", "1"], "--gap"),
        ("bench", ["--filter", "("], "--filter"),
        ("bench", ["--verifier", ""], "cannot be loaded"),
        ("bench", ["--verifier", "no.such.module:verify"], "cannot be loaded"),
        ("bench", ["--cluster", ""], "--cluster"),
        ("bench", ["--expect", "/nowhere.csv"], "nowhere.csv"),
        ("bench", ["--engine", "split", "--no-alternate"], "alternate"),
        ("compare", ["--tool", "="], "--tool"),
        ("compare", ["--tool", "a=/nowhere"], "a"),
        ("compare", ["--results", "b=/nowhere.csv"], "nowhere.csv"),
        ("report", ["--ours", "nobody"], ""),
    ],
)
def test_arguments_that_do_not_go_together_are_refused_by_name(
    command: str,
    arguments: list[str],
    word: str,
    usual: dict[str, list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([command, *usual[command], *arguments]) == 2
    one_clear_line(capsys.readouterr().err, (word,))


def looping(folder: Path, name: str) -> Path:
    (folder / name).symlink_to(folder / name)
    return folder / name


def too_long(folder: Path, name: str) -> Path:
    return folder / ("a" * 300 + name)


def in_a_loop(folder: Path, name: str) -> Path:
    return looping(folder, "loop") / name


def below_a_file(folder: Path, name: str) -> Path:
    (folder / "plain").write_text("")
    return folder / "plain" / name


def unwritable(folder: Path, name: str) -> Path:
    closed = folder / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(closed, os.W_OK):
        pytest.skip("this user may write everywhere")
    return closed / name


def taken(folder: Path, name: str) -> Path:
    """A folder where a file is to be, and a file where a folder is to be."""
    path = folder / name
    path.mkdir() if path.suffix else path.write_text("")
    return path


PLACES = [looping, too_long, in_a_loop, below_a_file, unwritable, taken]
WHERE = [(command, option) for command, written in WRITTEN.items() for option in written]


@pytest.mark.parametrize("place", PLACES, ids=[place.__name__ for place in PLACES])
@pytest.mark.parametrize(("command", "option"), WHERE)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    command: str,
    option: str,
    place: Callable[[Path, str], Path],
    usual: dict[str, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    suffix = "" if option == "--out" else SUFFIX.get(option, ".txt")
    path = place(tmp_path, f"result{suffix}")
    assert main([command, *usual[command], option, str(path)]) == 2
    out, err = capsys.readouterr()
    one_clear_line(err, ())
    assert out == ""


READ = [
    *((command, 0) for command in COMMANDS),
    *((command, 1) for command in ("verify", "certify", "radius", "supports", "check")),
    ("check-certificate", 1),
    ("check-certificate", 2),
]


@pytest.mark.parametrize("place", [looping, too_long, in_a_loop, below_a_file])
@pytest.mark.parametrize(("command", "position"), READ)
def test_a_file_that_cannot_be_read_is_one_line_and_exit_code_2(
    command: str,
    position: int,
    place: Callable[[Path, str], Path],
    usual: dict[str, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = list(usual[command])
    arguments[position] = str(place(tmp_path, f"other{Path(arguments[position]).suffix}"))
    assert main([command, *arguments]) == 2
    out, err = capsys.readouterr()
    if command != "networks":  # a table that says what is refused
        one_clear_line(err, ())
        assert out == ""


def redirected(command: str, arguments: list[str], output: int | IO[bytes]) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, command, *arguments],
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "report"])
def test_a_full_disk_behind_the_output_is_a_line_and_exit_code_2(
    command: str, usual: dict[str, list[str]], tmp_path: Path
) -> None:
    """Also where 1 has a meaning of its own, such as a contradiction."""
    with Path("/dev/full").open("wb") as full:
        code, err = redirected(command, usual[command], full)
    assert code == 2
    *before, last = err.splitlines()
    assert last.startswith("fgp-vnn: ") and last.endswith("No space left on device")
    assert all(line.startswith("fgp-vnn: what is done is in") for line in before)
    if command == "bench":  # and what was done is not lost
        assert (tmp_path / "out" / "results.jsonl").read_text().count("\n") >= 1


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "report"])
def test_a_reader_that_goes_away_is_exit_code_141(
    command: str, usual: dict[str, list[str]]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        code, err = redirected(command, usual[command], writer)
    finally:
        os.close(writer)
    assert code == 141
    assert all(line.startswith("fgp-vnn: what is done is in") for line in err.splitlines())


def test_help_on_a_full_disk_and_a_closed_output_are_no_tracebacks() -> None:
    with Path("/dev/full").open("wb") as full:
        code, err = redirected("verify", ["--help"], full)
    assert (code, err.count("\n")) == (2, 1)
    shell = '"$@" >&-; test $? = 0'
    words = ["sh", "-c", shell, "-", *COMMAND, "supports", str(MODEL), str(SAFE)]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_is_no_text_can_be_printed(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.onnx")
    code, err = redirected("networks", [name], subprocess.DEVNULL)
    assert (code, err) == (2, "")
