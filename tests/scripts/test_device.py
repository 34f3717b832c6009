"""The scripts that measure devices and large networks, on a CPU and small ones."""

from __future__ import annotations

import pytest

import device
import large_network
from fgp_vnn.base.verdict import Verdict


def test_a_table_has_a_row_for_each_network(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--devices", "cpu", "--filter", "dense_16x2_pgd_untargeted_0.02", "--timeout", "10"]
    assert device.main(words) == 0
    told = capsys.readouterr().out
    assert "dense_16x2_pgd" in told and "0 contradictions" in told


def test_a_device_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert device.main(["--devices", "abacus"]) == 2
    assert "abacus" in capsys.readouterr().err


def test_devices_that_disagree_are_counted() -> None:
    def verdict(status: str) -> Verdict:
        return Verdict(status, "", None, "", {"total": 1.0}, {})  # type: ignore[arg-type]

    runs = [
        {"cpu": verdict("sat"), "cuda": verdict("unsat")},
        {"cpu": verdict("sat"), "cuda": verdict("timeout")},
        {"cpu": verdict("unsat"), "cuda": verdict("unsat")},
    ]
    assert device.contradictions({"network": runs}) == 1


def test_a_residual_network_is_made_and_decided(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--architecture", "resnet_2-3-5", "--shape", "1", "6", "6", "--epsilon", "1e-5"]
    assert large_network.main(words) == 0
    told = capsys.readouterr().out
    assert "at 1e-05" in told and " GB" in told
    assert "unsat" in told
