"""Certified lower bounds of the robustness radius."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_networks import balls, random_network, random_point, sample, save_onnx

from fgp_vnn.certifier import Certifier
from fgp_vnn.cli import main
from fgp_vnn.network import Network
from fgp_vnn.radii import find_radius
from fgp_vnn.robustness import Norm, other_class
from reference_walk import layers_of, reference_walk

NORMS: dict[Norm, float] = {"l2": 2, "linf": np.inf, "l1": 1}


def nearest_sampled(network: Network, x: np.ndarray, limit: float, norm: Norm) -> float:
    """The distance of the nearest sampled input with another class."""
    domain = balls(x, limit)["l2"]
    points = sample(domain, 20_000, 0)
    label = int(network(domain.center.unsqueeze(0)).argmax())
    other = points[network(points).argmax(1) != label]
    distances = torch.linalg.vector_norm(other - domain.center, NORMS[norm], dim=1)
    return float(distances.min()) if len(distances) else np.inf


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(8))
def test_no_other_class_is_nearer_than_the_bound(norm: Norm, seed: int) -> None:
    network = random_network((4, 7, 6, 3), seed)
    x = random_point(4, seed)
    result = find_radius(Certifier.of(network), x, maximum=0.6, norm=norm, timeout=2)
    assert result.lower <= nearest_sampled(network, x, 0.6, norm)
    assert result.lower <= result.upper
    if result.counterexample is not None:
        offset = result.counterexample.x.astype(np.float64) - x
        assert np.linalg.norm(offset, NORMS[norm]) <= result.upper
        y = result.counterexample.y
        assert y[other_class(y, result.label)] >= y[result.label]


@pytest.mark.parametrize("seed", range(8))
def test_in_l2_the_bound_ends_at_a_witness_or_at_the_limit(seed: int) -> None:
    network = random_network((4, 7, 6, 3), seed)
    x = random_point(4, seed)
    result = find_radius(Certifier.of(network), x, maximum=0.6)
    assert result.tight or result.lower == pytest.approx(0.6)
    if result.tight and result.lower > 1e-3:
        layers = layers_of(network)
        assert reference_walk(layers, x, 0.999 * result.lower).status != "not_robust"


def test_the_bound_only_grows_and_is_valid_whenever_it_is_interrupted() -> None:
    network = random_network((6, 12, 10, 3), 3)
    x = random_point(6, 3)
    heard: list[float] = []
    final = find_radius(
        Certifier.of(network), x, maximum=0.5, progress=lambda lower, upper: heard.append(lower)
    )
    assert heard == sorted(heard)
    assert all(lower <= final.upper * (1 + 1e-6) for lower in heard)
    cut = find_radius(Certifier.of(network), x, maximum=0.5, timeout=1e-6)
    assert cut.lower <= final.upper * (1 + 1e-6)


def test_the_command_writes_each_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = random_network((4, 6, 3), 0)
    model = str(save_onnx(network, tmp_path / "net.onnx"))
    np.save(tmp_path / "x.npy", np.stack([random_point(4, s) for s in range(3)]))
    output = tmp_path / "out.json"
    points = str(tmp_path / "x.npy")
    code = main(["radius", model, points, "--max", "0.3", "--json", "--output", str(output)])
    assert code == 0
    summary = json.loads(capsys.readouterr().out)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert summary["points"] == len(rows) == 3
    assert all(0 <= row["lower"] <= 0.3 for row in rows)


def test_a_limit_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(save_onnx(random_network((4, 6, 3), 0), tmp_path / "net.onnx"))
    np.save(tmp_path / "x.npy", random_point(4, 0))
    assert main(["radius", model, str(tmp_path / "x.npy"), "--max", "0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
