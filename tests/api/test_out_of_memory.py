"""An allocation that fails: one line that says what to do, and every result that is owed."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fgp_vnn
from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.errors import InputError, ran_out_of_memory
from fgp_vnn.cli.main import main
from tests.helpers.command_line import one_clear_line, small_model, small_property

FAR = 1 << 58  # numbers: more than any machine has


def ask_torch(*given: Any, **more: Any) -> Any:
    return torch.empty(FAR)


def ask_numpy(*given: Any, **more: Any) -> Any:
    return np.empty(FAR)


GREEDY = pytest.mark.parametrize("greedy", [ask_torch, ask_numpy])
Greedy = Callable[..., Any]


def points(folder: Path, network: int = 4) -> Path:
    path = folder / "points.npy"
    np.save(path, np.full((2, network), 0.25, dtype=np.float32))
    return path


@pytest.mark.slow
def test_verify_says_unknown_and_names_the_option(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("fgp_vnn.api.verify.run", ask_torch)
    model, prop, results = small_model(tmp_path), small_property(tmp_path), tmp_path / "out.txt"
    words = ["verify", str(model), str(prop), "--results", str(results), "--timeout", "0.5"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith("unknown") and "--memory" in said and said.count("\n") == 1
    assert results.read_text().split()[0] == "unknown"
    with pytest.raises(InputError, match="out of memory"):
        fgp_vnn.verify(model, prop, timeout=0.5)


@GREEDY
def test_certify_leaves_the_point_open_and_goes_on(
    greedy: Greedy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fgp_vnn.api.certify.run", greedy)
    monkeypatch.setattr(Certifier, "descend", greedy)
    table = tmp_path / "out.csv"
    model = small_model(tmp_path)
    given = ["certify", str(model), str(points(tmp_path)), "--epsilon", "0.1"]
    assert main([*given, "--output", str(table)]) == 0
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["unknown"] * 2
    assert all("--memory" in row["reason"] for row in rows)


@GREEDY
def test_a_radius_keeps_both_ends(
    greedy: Greedy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def narrow(ends: Any, question: str) -> Any:
        ends.raise_to(1e-9)
        return greedy()

    monkeypatch.setattr("fgp_vnn.api.certify.run", narrow)
    model = small_model(tmp_path)
    found = fgp_vnn.radius(model, np.full(4, 0.25))
    assert isinstance(found, fgp_vnn.Radius)
    assert (found.lower, found.tight, found.ended) == (1e-9, False, "memory")
    assert main(["radius", str(model), str(points(tmp_path)), "--max", "1"]) == 0
    assert capsys.readouterr().out.count("--memory") == 2


@GREEDY
@pytest.mark.parametrize("command", ["supports", "certify", "radius"])
def test_a_network_that_does_not_fit_is_one_line(
    command: str,
    greedy: Greedy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("fgp_vnn.network.onnx.load.normal_form", greedy)
    monkeypatch.setattr("fgp_vnn.network.onnx.load.check_against_runtime", greedy)
    other = small_property(tmp_path) if command == "supports" else points(tmp_path)
    more = {"supports": [], "certify": ["--epsilon", "0.1"], "radius": ["--max", "1"]}[command]
    assert main([command, str(small_model(tmp_path)), str(other), *more]) == 2
    one_clear_line(capsys.readouterr().err, ("out of memory", "--memory"))


def test_other_errors_are_not_taken_for_it() -> None:
    assert ran_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert ran_out_of_memory(RuntimeError("std::bad_alloc"))
    assert not ran_out_of_memory(RuntimeError("size of tensor a must match tensor b"))
    assert not ran_out_of_memory(ValueError("a memory layout that is not known"))
