"""Nothing is lost and nothing done twice, however a run ends."""

from __future__ import annotations

import csv
import random
import subprocess
import time
from pathlib import Path

import pytest

from fgp_vnn.bench.journal import read_records
from tests.bench.commands import command, environment
from tests.helpers.bench_folders import make_folder


@pytest.mark.slow
def test_kills_leave_the_table_of_an_undisturbed_run(tmp_path: Path) -> None:
    words = ["nap", "nap", "sat", "unknown", "raise"] * 8
    folder = make_folder(tmp_path / "cat", words)
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    subprocess.run(
        command(folder, undisturbed, "--jobs", "2", "--quiet"), env=environment(), check=True
    )
    chance = random.Random(7)
    kills = 0
    for done in sorted(chance.sample(range(24), 4)):
        process = subprocess.Popen(
            command(folder, killed, "--jobs", "2", "--quiet"), env=environment()
        )
        while process.poll() is None and len(read_records(killed)) < done:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.02))
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills > 1, "most runs ended before they were killed"
    subprocess.run(command(folder, killed, "--jobs", "2", "--quiet"), env=environment(), check=True)
    assert table(killed) == table(undisturbed)
    assert len(table(killed)) == 40
    for record in read_records(killed):
        if record.result == "sat":
            assert (killed / record.counterexample).is_file()


def table(out: Path) -> list[tuple[str, ...]]:
    """Every row without its times; a row that is there twice is here twice."""
    with (out / "results.csv").open(newline="") as file:
        rows = sorted((row[0], row[1], row[2], row[4]) for row in csv.reader(file))
    lines = sorted(
        (record.category, record.onnx, record.vnnlib, record.result) for record in read_records(out)
    )
    assert rows == lines
    return [tuple(row) for row in rows]
