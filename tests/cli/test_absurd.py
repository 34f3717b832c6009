"""Every option of every command with values that make no sense, and every place that fails.

Always one clear line and the exit code that is documented, never a traceback, and nothing is lost
that was there before.
"""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fgp_vnn.cli import arguments
from fgp_vnn.cli.main import COMMANDS, main
from tests.helpers.command_line import one_clear_line

HUGE = "9" * 40
NO_NUMBER = ["", "nan", "-nan", "inf", "-inf", "1e400", "-1", "x", "0x10", "1,5"]
NO_COUNT = ["", "nan", "inf", "1e3", "0", "-1", "x", HUGE, "9" * 5000]
VALUES: dict[Any, list[str]] = {
    arguments.seconds: [*NO_NUMBER, "0", "1e300"],
    arguments.gigabytes: [*NO_NUMBER, "0", "1e300", "0.001", "0.29"],
    arguments.positive_number: [*NO_NUMBER, "0"],
    arguments.radius: NO_NUMBER,
    arguments.written_radius: NO_NUMBER,
    arguments.finite: ["", "nan", "inf", "-inf", "1e400", "x"],
    arguments.count: NO_COUNT,
    arguments.whole: [v for v in NO_COUNT if v != "0"],
    arguments.jobs: [*NO_COUNT, "1000000"],
    arguments.threads: [*NO_COUNT, "99999999999", "1000"],
    arguments.seed: ["", "nan", "1e3", "-1", "x", HUGE, "9" * 5000],
    int: ["", "nan", "1e3", "x"],
}
FREE = (
    "--about",
    "--filter",
    "--verifier",
    "--cluster",
    "--ours",
    "--tool",
    "--results",
)  # any text
# Those whose value is a file that the command writes, or a folder.
WRITTEN = {
    "verify": ["--results", "--certificate"],
    "certify": ["--output"],
    "radius": ["--output", "--plot", "--report"],
    "bench": ["--out"],
    "compare": ["--out"],
}
SUFFIX = {"--output": ".csv", "--plot": ".png", "--report": ".html"}


def options(command: str) -> Iterator[argparse.Action]:
    parser = argparse.ArgumentParser()
    import_module(f"fgp_vnn.cli.{command.replace('-', '_')}").add_arguments(parser)
    yield from (action for action in parser._actions if action.option_strings)


def bad_values() -> Iterator[tuple[str, str, list[str]]]:
    """Command, option and values: every bad value of a type with one option of that type, and one
    value with every other option. Whatever has a type is in the table above, or this fails."""
    seen: set[object] = set()
    for command in COMMANDS:
        for action in options(command):
            option, kind = action.option_strings[-1], action.type
            if action.choices is not None:
                yield command, option, ["x"]
            elif not (action.nargs == 0 or option in FREE or kind is Path):
                assert kind in VALUES, f"{command} {option}: no bad values of {kind}"
                yield command, option, VALUES[kind][: 1 if kind in seen else None]
                seen.add(kind)


@pytest.mark.parametrize(("command", "option", "values"), [*bad_values()])
def test_a_value_that_makes_no_sense_is_one_line_and_exit_code_2(
    command: str,
    option: str,
    values: list[str],
    usual: dict[str, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sorted(tmp_path.rglob("*"))
    for value in values:
        given = [option, value] if value[:1] != "-" else [f"{option}={value}"]
        pair = ["0"] if option == "--clip" else []
        assert main([command, *usual[command], *given, *pair]) == 2, value
        out, err = capsys.readouterr()
        one_clear_line(err, (option,))
        assert out == ""
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("command", "given", "word"),
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
        ("certify", ["--clip", "1", "0"], "--clip: 1 is above 0"),
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
    given: list[str],
    word: str,
    usual: dict[str, list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([command, *usual[command], *given]) == 2
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
    *((command, 0) for command in COMMANDS if command not in ("demo", "completion")),
    *(
        (command, 1)
        for command in ("verify", "certify", "radius", "supports", "check", "bounds", "property")
    ),
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
    given = list(usual[command])
    given[position] = str(place(tmp_path, f"other{Path(given[position]).suffix}"))
    assert main([command, *given]) == 2
    out, err = capsys.readouterr()
    if command != "networks":  # a table that says what is refused
        one_clear_line(err, ())
        assert out == ""
