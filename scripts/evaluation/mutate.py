"""See that the tests notice an unsound kernel.

    python scripts/evaluation/mutate.py [PART OF A NAME ...]

Each mutation is applied to a copy of the package in a temporary folder, and its test files are run
there. The exit code is 1 if a mutation survives, or if the tests fail without any.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from mutations import MUTATIONS, Mutation

ROOT = next(p for p in Path(__file__).resolve().parents if (p / "pyproject.toml").is_file())
LIMIT = 600.0  # seconds for the tests of one mutation


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Which mutations do the tests notice?")
    parser.add_argument("names", nargs="*", help="only mutations with one of these in their names")
    parser.add_argument("--no-baseline", action="store_true", help="trust that the tests pass")
    chosen = parser.parse_args(argv)
    wanted = [m for m in MUTATIONS if not chosen.names or any(n in m.name for n in chosen.names)]
    for mutation in wanted:
        mutated(mutation)  # an error now, not after an hour
    console = Console()
    if not chosen.no_baseline:
        noticed = run_tests(None, {test for m in wanted for test in m.tests})
        if noticed:
            console.print(f"without any mutation, {noticed}", soft_wrap=True)
            return 1
    table = Table("mutation", "file", "caught by", "seconds")
    survived = 0
    for mutation in track(wanted, description="mutating", console=console):
        begin = time.monotonic()
        noticed = run_tests(mutation, mutation.tests)
        survived += not noticed
        seconds = f"{time.monotonic() - begin:.0f}"
        table.add_row(mutation.name, mutation.file, noticed or "[red]nothing[/red]", seconds)
        console.print(f"{mutation.name}: {noticed or 'not noticed'}", soft_wrap=True)
    console.print(table)
    console.print(f"{len(wanted)} mutations, {survived} survived")
    return 1 if survived else 0


def mutated(mutation: Mutation) -> str:
    """The text of the file with the mutation in it."""
    text = (ROOT / "fgp_vnn" / mutation.file).read_text(encoding="utf-8")
    if (found := text.count(mutation.old)) != 1:
        raise ValueError(f"{mutation.name}: {mutation.old!r} occurs {found} times, not once")
    return text.replace(mutation.old, mutation.new)


def run_tests(mutation: Mutation | None, tests: Iterable[str]) -> str:
    """The first test that fails on a mutated copy; empty if none does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("fgp_vnn", "tests", "scripts", "vnncomp"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        if mutation is not None:
            (copy / "fgp_vnn" / mutation.file).write_text(mutated(mutation), encoding="utf-8")
        paths = [f"tests/{test}" for test in sorted(tests)]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *paths]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(copy)}
        try:
            done = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return "a test that does not end"
    if done.returncode == 0:
        return ""
    # A file that cannot be collected says nothing about the mutation.
    failed = re.search(r"^FAILED (?:tests/)?(.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"no test was run:\n{done.stdout}{done.stderr}")
    return failed[1]


if __name__ == "__main__":
    sys.exit(main())
