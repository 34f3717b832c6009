"""The pages of the documentation, followed as a newcomer does: from top to bottom."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

DOCS = ROOT / "docs"
# What a page that is followed leaves behind and says, besides ending without an error.
FOLLOWED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "README.md": (
        ("unsat by bounds", "certificate accepted", "20 points:", "9 of 9 solved", "unsat bounds"),
        ("example/robust.html", "example/radii.html", "example/runs/compare/report.html"),
    ),
    "docs/start.md": (
        ("verified robust accuracy", "10 points:", "unsat bounds", "5 of 5 solved"),
        ("example/radii.html", "example/runs/start/report.html"),
    ),
    "docs/howto/model.md": (("supported\n", "2 networks: 2 can be read", "sat"), ()),
    "docs/howto/property.md": (
        ("6 instances in", "1 of 1 solved", "unsat by "),
        ("example/robust/onnx",),
    ),
    "docs/howto/python.md": ((), ("example/proof.vnnlib",)),
    "docs/howto/radius.md": (
        ("20 points:", "3 points:"),
        ("example/out.html", "example/radii.png", "example/radii.svg"),
    ),
    "docs/howto/folders.md": (
        ("9 of 9 solved", "valid\n"),
        ("example/runs/first/report.html", "example/runs/compare/repeat.sh"),
    ),
    "docs/howto/certificates.md": (
        ("certificate accepted", "unsat safe.npz"),
        ("example/runs/proved/certificates",),
    ),
}
# Command lines that no test runs as they stand, and what does instead.
NOT_RUN = {
    "--cluster": "tests/bench/test_cluster.py, on a cluster inside the machine",
    "fgp-vnn demo": "tests/vnncomp/test_benchmark.py and scripts/demo.sh",
}


def blocks(page: Path) -> list[tuple[str, str]]:
    """The blocks of a page that are meant to be run: language and text."""
    return re.findall(r"^```(python|bash)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


# Pages that are followed one after the other: a command that an earlier one has is not run again.
TOGETHER = {"docs/howto/folders.md": ("README.md",)}
ALONE = [page for page in FOLLOWED if not any(page in after for after in TOGETHER.values())]


def script(*pages: str) -> str:
    """Pages as one Python session; their shell blocks run in between, and a cd holds."""
    lines = [
        "import os, subprocess",
        "def shell(text):",
        "    subprocess.run(['bash', '-euc', text + '\\npwd > \"$WHERE\"'], check=True)",
        "    os.chdir(open(os.environ['WHERE']).read().strip())",
    ]
    seen: set[str] = set()
    for page in pages:
        for language, text in blocks(ROOT / page):
            if language == "bash":
                new = [line for line in text.splitlines() if line.partition("  #")[0] not in seen]
                seen |= {line.partition("  #")[0] for line in new}
                lines.append(f"shell({chr(10).join(new)!r})")
            else:
                lines.append(text)
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("page", ALONE)
def test_a_page_does_what_it_says(page: str, tmp_path: Path, warm_python: str) -> None:
    """The folder is like a clone: the competition's scripts are in it."""
    for module in ("sklearn", "jinja2", "matplotlib", "onnxscript"):
        pytest.importorskip(module, reason="the pages use all that can be installed")
    pages = (page, *TOGETHER.get(page, ()))
    tools, clone = tmp_path / "bin", tmp_path / "clone"
    for folder in (tools, clone):
        folder.mkdir()
    for name, command in (("fgp-vnn", [warm_python, "-m", "fgp_vnn"]), ("python", [warm_python])):
        (tools / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (tools / name).chmod(0o755)
    (clone / "vnncomp").symlink_to(ROOT / "vnncomp")
    done = subprocess.run(
        [warm_python, "-c", script(*pages)],
        cwd=clone,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "FGP_VNN": str(tools / "fgp-vnn"),
            "WHERE": str(tmp_path / "where"),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for said, left in (FOLLOWED[each] for each in pages):
        for words in said:
            assert words in done.stdout, done.stdout
        for name in left:
            assert (clone / name).exists(), name


def test_every_command_of_the_pages_is_in_a_block_that_is_run() -> None:
    """All lines that begin with the program's name; the reference is made from the program."""
    own = ("reference", "results.md")  # which are written by programs that run them
    written = [page for page in DOCS.rglob("*.md") if not {*page.parts} & {*own}]
    pages = [ROOT / "README.md", *written]
    for page in pages:
        name = page.relative_to(ROOT).as_posix()
        run = {line.strip() for _, text in blocks(page) for line in text.splitlines()}
        for line in re.findall(r"^ *(?:\$ )?(fgp-vnn .*)$", page.read_text(), re.MULTILINE):
            followed = name in FOLLOWED and line.strip() in run
            assert followed or any(words in line for words in NOT_RUN), f"{name}: {line}"


def test_the_page_of_results_is_written_by_the_commands_that_it_names(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("results", DOCS / "results.py")
    assert spec is not None and spec.loader is not None
    results = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(results)
    text = results.PAGE.read_text()
    commands = [command for command, _ in results.BLOCK.findall(text)]
    assert len(commands) >= 4 and len(commands) == text.count("fgp-vnn ") - text.count("`fgp-vnn ")
    assert results.renewed(text, tmp_path, "no command has these words") == text
    small = "```text\n$ fgp-vnn --version\nan old line\n```\n"
    assert results.renewed(small, tmp_path).splitlines()[2].startswith("fgp-vnn ")
