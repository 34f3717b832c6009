"""The walk against the plain reference implementation of the paper's algorithm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.api.certify import Certifier
from fgp_vnn.network import load_network
from reference_walk import layers_of, reference_walk
from tests.helpers.small_networks import random_network, random_point

OURS = ("combined", "signed", "stable", "alternate", "reduce")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("without", [(), ("combined",), ("combined", "signed"), OURS])
def test_the_walk_never_contradicts_the_reference(seed: int, without: tuple[str, ...]) -> None:
    network = random_network((5, 7, 6, 3), seed)
    x = random_point(5, seed)
    epsilon = (0.05, 0.15, 0.4)[seed % 3]
    expected = reference_walk(layers_of(network), x, epsilon)
    certifier = Certifier.of(network, engine="walk", **dict.fromkeys(without, False))
    result = certifier.certify(x, epsilon=epsilon)
    pairs = {(expected.status, result.status)}
    assert not pairs & {("robust", "not_robust"), ("not_robust", "robust")}
    if expected.status == "robust":
        assert result.status == "robust"
        assert result.statistics["regions"] <= expected.regions


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5])
def test_the_papers_rules_explore_the_same_regions(seed: int) -> None:
    network = random_network((4, 6, 5, 3), seed)
    x = random_point(4, seed)
    expected = reference_walk(layers_of(network), x, 0.05)
    certifier = Certifier.of(network, engine="walk", **dict.fromkeys(OURS, False))
    result = certifier.certify(x, epsilon=0.05)
    assert expected.status == "robust"
    assert (result.status, result.statistics["regions"]) == ("robust", expected.regions)


@pytest.mark.parametrize("seed", range(20))
def test_alternating_projections_leave_nothing_unknown(seed: int) -> None:
    network = random_network((5, 7, 6, 3), seed)
    result = Certifier.of(network, engine="walk").certify(random_point(5, seed), epsilon=0.3)
    assert result.status in ("robust", "not_robust")


@pytest.mark.parametrize("full_queue", [False, True])
def test_both_variants_end_alike_where_no_boundary_is_met(full_queue: bool) -> None:
    network = random_network((5, 7, 6, 3), 1)
    x = random_point(5, 1)
    variant = "full-queue" if full_queue else "first-boundary"
    certifier = Certifier.of(network, engine="walk", variant=variant)
    expected = reference_walk(layers_of(network), x, 0.01, full_queue=full_queue)
    assert certifier.certify(x, epsilon=0.01).status == expected.status == "robust"


def test_the_first_points_of_the_paper(shared_data: Path) -> None:
    paper = shared_data / "paper"
    loaded = load_network(paper / "mnist20x3.onnx")
    with np.load(paper / "mnist100.npz") as archive:
        points = archive["x"][:12].astype(np.float64)
    certifier = Certifier.of(loaded, engine="walk")
    layers = layers_of(loaded.network)
    for x in points:
        result = certifier.certify(x, epsilon=0.25)
        expected = reference_walk(layers, x, 0.25, regions=3000)
        assert result.status in ("robust", "not_robust")
        if expected.status in ("robust", "not_robust"):
            assert result.status == expected.status
