"""Run the commands of docs/results.md again, and put their output under them.

    python docs/results.py                          # about ten minutes on one core
    python docs/results.py --word radius            # only the commands with this word
    python docs/results.py --data ../shared/data    # also those on benchmarks of VNN-COMP

A block of the page begins with `$ ` and a command, followed by the last lines of its output; their
number stays the same. The commands run in `example`, which `fgp-vnn demo --files example` creates
in a folder with the scripts of a clone. `../data` is the folder of `--data`, with benchmarks in
`vnncomp` and published tables in `published`; without it, the commands that need it are skipped.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = HERE / "results.md"
BLOCK = re.compile(r"(?<=```text\n)\$ (fgp-vnn [^\n]*)\n(.*?)(?=\n```)", re.DOTALL)


def run(command: str, folder: Path) -> list[str]:
    """The lines that a command prints."""
    words = [sys.executable, "-m", "fgp_vnn", *shlex.split(command)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stdout}{done.stderr}")
    return [line.rstrip() for line in done.stdout.rstrip().splitlines()]


def renewed(text: str, folder: Path, word: str = "") -> str:
    """The text of the page with the output of its commands, run in a folder."""

    def again(block: re.Match[str]) -> str:
        command, shown = block.groups()
        if word not in command or ("../data/" in command and not (folder / "../data").exists()):
            return block.group()
        lines = run(command, folder)[-len(shown.splitlines()) :]
        return "\n".join([f"$ {command}", *lines])

    return BLOCK.sub(again, text)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--word", default="", help="run only the commands with this word")
    parser.add_argument("--data", type=Path, help="folder with vnncomp and published in it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        clone = Path(temporary)
        for name in ("scripts", "vnncomp"):
            (clone / name).symlink_to(ROOT / name)
        if arguments.data:
            (clone / "data").symlink_to(arguments.data.resolve())
        run("fgp-vnn demo --files example", clone)
        text = renewed(PAGE.read_text(encoding="utf-8"), clone / "example", arguments.word)
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
