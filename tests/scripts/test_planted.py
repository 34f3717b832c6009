"""Hidden counterexamples: never `unsat`, whatever the engine and with the attack off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import attacks_off
import planted
from fgp_vnn import verify
from fgp_vnn.base.verdict import Verdict
from planting.instance import Planted
from planting.spikes import conv_spike, dense_spike
from planting.trained import train_planted
from tests.helpers.places import BENCHMARK

SPIKES = [
    dense_spike(0, 2, (6, 4), 0.3),
    dense_spike(1, 5, (20, 20), 0.03),
    dense_spike(2, 4, (8, 6, 6, 6), 0.003),
    conv_spike(0, 4, 2, (10, 8), 0.03),
]


@pytest.mark.parametrize("spike", SPIKES, ids=lambda spike: spike.name)
@pytest.mark.parametrize("engine", planted.ENGINES)
def test_no_engine_calls_a_spike_safe(spike: Planted, engine: str, tmp_path: Path) -> None:
    verdict = verify(*spike.write(tmp_path), engine=engine, attack=False, timeout=0.2)
    assert verdict.status != "unsat"


@pytest.mark.parametrize("spike", SPIKES, ids=lambda spike: spike.name)
def test_a_spike_is_hidden_from_the_attack(spike: Planted, tmp_path: Path) -> None:
    assert verify(*spike.write(tmp_path), engine="attack").status == "unknown"


def test_a_small_box_without_the_spike_is_safe(tmp_path: Path) -> None:
    """The random part is safe: it is the spike alone that is to be found."""
    spike = SPIKES[1]
    beside = replace(spike, name="beside", upper=spike.point - np.float32(0.1))
    with pytest.raises(ValueError, match="the planted point is no counterexample"):
        beside.write(tmp_path)
    files = tmp_path / "beside.onnx", tmp_path / "beside.vnnlib"
    assert verify(*files, attack=False, timeout=60).status == "unsat"


def test_trained_counterexamples_are_confirmed(tmp_path: Path) -> None:
    held = train_planted(0, architecture="16x2", shape=(4,), boxes=3, epochs=40)
    assert held
    for one in held:
        files = one.write(tmp_path)  # raises where the point is no counterexample
        assert verify(*files, attack=False, timeout=0.3).status != "unsat"


def test_a_wrong_verdict_on_a_planted_point_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(planted, "verify", lambda *files, **settings: Verdict("unsat"))
    monkeypatch.setattr(planted, "DENSE", planted.DENSE[:1])
    assert planted.main(["--seeds", "1", "--trained", "0"]) == 1
    assert "auto says unsat: dense_2_6x4_0.3_0" in capsys.readouterr().out


def test_known_counterexamples_are_never_lost_without_attacks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert attacks_off.main([str(BENCHMARK), "--limit", "0.4"]) == 0
    assert "24 verdicts where a counterexample is known; 0 wrong" in capsys.readouterr().out


def test_a_lost_counterexample_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attacks_off, "verify", lambda *files, **settings: Verdict("unsat"))
    assert attacks_off.main([str(BENCHMARK), "--filter", "dense_16x2_standard"]) == 1
    assert "auto says unsat: benchmark" in capsys.readouterr().out


def test_a_folder_without_instances_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert attacks_off.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("attacks_off.py: ")
