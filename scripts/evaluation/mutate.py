"""Check that the tests notice an unsound kernel.

    python scripts/evaluation/mutate.py [PART OF A NAME ...]

Each mutation is applied to a copy of the package in a temporary folder, and its tests are run
there. The exit code is 1 if a mutation survives, or if the tests fail without any.
"""

from __future__ import annotations

import argparse
import compileall
import multiprocessing
import os
import py_compile
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from mutation import Mutation
from mutations import MUTATIONS

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 600.0  # seconds for the tests of one mutation
PROCESSES = multiprocessing.get_context("forkserver")  # with all but the package imported


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Which mutations do the tests notice?")
    parser.add_argument("names", nargs="*", help="only mutations with one of these in their names")
    parser.add_argument("--no-baseline", action="store_true", help="trust that the tests pass")
    chosen = parser.parse_args(argv)
    wanted = [m for m in MUTATIONS if not chosen.names or any(n in m.name for n in chosen.names)]
    for mutation in wanted:
        text = (ROOT / "fgp_vnn" / mutation.file).read_text(encoding="utf-8")
        mutated(mutation, text)  # an error now, not after an hour
    os.environ["OMP_NUM_THREADS"] = "1"
    PROCESSES.set_forkserver_preload(["hypothesis", "onnxruntime", "scipy.optimize", "torch"])
    with mutable_copy() as copy:
        return report(wanted, copy, baseline=not chosen.no_baseline)


def report(wanted: Sequence[Mutation], copy: Path, *, baseline: bool) -> int:
    """Print the test that catches each mutation; return the exit code."""
    console = Console(markup=False)  # names of tests have brackets
    if baseline and (
        noticed := run_tests(copy, None, dict.fromkeys(test for m in wanted for test in m.tests))
    ):
        console.print(f"without any mutation, {noticed}", soft_wrap=True)
        return 1
    table = Table("mutation", "file", "caught by", "seconds")
    survived = 0
    for mutation in track(wanted, description="mutating", console=console):
        begin = time.monotonic()
        noticed = run_tests(copy, mutation, mutation.tests)
        survived += not noticed
        seconds = f"{time.monotonic() - begin:.0f}"
        table.add_row(mutation.name, mutation.file, noticed or Text("nothing", "red"), seconds)
        console.print(f"{mutation.name}: {noticed or 'not noticed'}", soft_wrap=True)
    console.print(table)
    console.print(f"{len(wanted)} mutations, {survived} survived")
    return 1 if survived else 0


def mutated(mutation: Mutation, text: str) -> str:
    """The text of the mutation's file with the mutation applied."""
    if (found := text.count(mutation.old)) != 1:
        raise ValueError(f"{mutation.name}: {mutation.old!r} occurs {found} times, not once")
    return text.replace(mutation.old, mutation.new)


@contextmanager
def mutable_copy() -> Iterator[Path]:
    """A copy of the files that the tests need; its bytecode is checked by content, not by time."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("fgp_vnn", "tests", "scripts", "vnncomp"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        checked = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(copy / "fgp_vnn", quiet=1, invalidation_mode=checked)
        yield copy


def run_tests(copy: Path, mutation: Mutation | None, tests: Iterable[str]) -> str:
    """The first test that fails with the mutation applied to the copy; empty if none does."""
    file = copy / "fgp_vnn" / (mutation.file if mutation else "__init__.py")
    text = file.read_text(encoding="utf-8")
    if mutation is not None:
        file.write_text(mutated(mutation, text), encoding="utf-8")
    result, end = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_first_failure, args=(copy, list(tests), end))
    process.start()
    end.close()
    try:
        if not result.poll(LIMIT):
            return "a test that does not end"
        code, failed = result.recv()
    finally:
        process.kill()
        process.join()
        file.write_text(text, encoding="utf-8")
    if code and not failed:  # a collection error says nothing about the mutation
        raise RuntimeError(f"no test was run: pytest ended with {code}")
    return str(failed)


def _first_failure(copy: Path, tests: Sequence[str], end: Connection) -> None:
    """Send the exit code of the tests, and the name of the first that fails."""
    os.chdir(copy)
    sys.path.insert(0, str(copy))
    os.environ["PYTHONPATH"] = str(copy)
    failures = _Failures()
    options = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider"]
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        code = pytest.main([*options, *(f"tests/{test}" for test in tests)], plugins=[failures])
    end.send((int(code), failures.first))


class _Failures:
    """A plugin that remembers the first test that fails."""

    first = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.first:
            self.first = report.nodeid.removeprefix("tests/")


if __name__ == "__main__":
    sys.exit(main())
