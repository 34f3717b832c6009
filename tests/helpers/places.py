"""The folders that tests read from, wherever the test lies."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "fgp_vnn"
TESTS = ROOT / "tests"
BENCHMARK = ROOT / "vnncomp" / "benchmark"  # the bundled one
SHARED_DATA = ROOT.parent / "shared" / "data"  # only through the fixture `shared_data`
