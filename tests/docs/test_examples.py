"""The first steps of the documentation, taken as a newcomer takes them: from top to bottom."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

pytestmark = pytest.mark.slow


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the blocks of a page that are meant to be run: language and text."""
    return re.findall(r"^```(python|bash)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def test_the_first_page_does_what_it_says(tmp_path: Path) -> None:
    """Python blocks are one session, shell blocks run between them."""
    pytest.importorskip("sklearn", reason="needs pip install 'fgp-vnn[train]'")
    pytest.importorskip("jinja2", reason="needs pip install 'fgp-vnn[report]'")
    lines = ["import subprocess"]
    for language, text in blocks(ROOT / "docs" / "start.md"):
        run = f"subprocess.run(['bash', '-euc', {text!r}], check=True)"
        lines.append(text if language == "python" else run)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, words in (("fgp-vnn", "-m fgp_vnn "), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "verified robust accuracy" in done.stdout
    assert "10 points:" in done.stdout
    assert "unsat bounds" in done.stdout
    assert "5 of 5 solved" in done.stdout
    assert (tmp_path / "radii.html").exists()
    assert (tmp_path / "runs" / "first" / "report.html").exists()
