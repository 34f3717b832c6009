"""A radius that is not as tight as was asked for says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fgp_vnn
from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.main import main
from fgp_vnn.strategy import Neurons, Strategy
from tests.helpers.small_networks import random_network, random_point, save_onnx


def test_linear_bounds_alone_are_named() -> None:
    network, x = random_network((6, 14, 12, 10, 4), 0), random_point(6, 0)
    found: Any = fgp_vnn.radius(network, x, maximum=2.0, engine="bounds")
    assert found.ended == "inconclusive" and "linear bounds alone" in found.reason
    assert found.reason in repr(found) and found.as_dict()["reason"] == found.reason


def test_a_gap_below_the_spacing_of_float32_is_blamed_on_rounding() -> None:
    network, x = random_network((3, 6, 3), 0), random_point(3, 0)
    found: Any = fgp_vnn.radius(network, x, maximum=3.0, gap=1e-14)
    assert found.ended == "inconclusive" and "rounding" in found.reason
    close: Any = fgp_vnn.radius(network, x, maximum=3.0, gap=0.01)
    assert (close.ended, close.reason) == ("tight", "")


def test_splits_of_smooth_neurons_close_a_gap_that_linear_bounds_leave() -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)]
    network, x = nn.Sequential(*layers), np.array([0.1, 0.2, 0.3])
    plain: Any = fgp_vnn.radius(network, x, maximum=5.0, gap=0.05, engine="bounds")
    assert plain.ended == "inconclusive" and "linear bounds alone" in plain.reason
    found: Any = fgp_vnn.radius(network, x, maximum=5.0, gap=0.05)
    assert (found.ended, found.reason) == ("tight", "")
    assert plain.lower < found.lower


def test_the_ball_that_stays_open_in_a_smooth_network_is_named_with_its_reason() -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)]
    x = np.array([0.1, 0.2, 0.3])
    short = Strategy(neurons=Neurons(most=1))
    found: Any = replace(Certifier.of(nn.Sequential(*layers)), strategy=short).radius(
        x, maximum=5.0
    )
    assert found.ended == "inconclusive"
    assert found.reason.startswith("the ball of radius") and "open" in found.reason


def test_the_command_says_it_in_its_line_and_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_onnx(random_network((6, 14, 12, 10, 4), 0), tmp_path / "net.onnx")
    np.savez(tmp_path / "points.npz", x=random_point(6, 0)[None])
    words = ["radius", str(model), str(tmp_path / "points.npz"), "--max", "2"]
    table = tmp_path / "radii.csv"
    assert main([*words, "--engine", "bounds", "--output", str(table)]) == 0
    assert "inconclusive (linear bounds alone" in capsys.readouterr().out
    assert "linear bounds alone" in table.read_text()


def test_a_maximum_may_be_a_fraction() -> None:
    network, x = random_network((2, 6, 3), 1), np.array([0.5, -0.3])
    text: Any = {"maximum": "1/64", "gap": "1/50"}
    found: Any = fgp_vnn.radius(network, x, **text)
    same: Any = fgp_vnn.radius(network, x, maximum=1 / 64, gap=0.02)
    assert 0 < found.lower <= 1 / 64 and (found.lower, found.upper) == (same.lower, same.upper)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"maximum": None}, "maximum is None; it must be a number"),
        ({"maximum": "far"}, "maximum is 'far'; it must be a number"),
        ({"maximum": 0}, "the maximum is 0.0; it must be a positive number"),
        ({"maximum": float("inf")}, "maximum is inf; it must be finite"),
        ({"gap": "a"}, "gap is 'a'; it must be a number"),
        ({"gap": 1}, "the gap is 1.0; it must lie between 0 and 1"),
    ],
)
def test_a_maximum_or_gap_that_makes_no_sense_is_refused(asked: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fgp_vnn.radius(random_network((2, 6, 3), 1), np.zeros(2), **asked)
