"""Fast-Lin, the yardstick: its bounds hold, and its radius is one that keeps the class."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fastlin import DUAL, fastlin_radius, proves
from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.robustness import Norm
from reference_walk import layers_of, reference_walk
from tests.helpers.small_networks import balls, random_network, random_point, sample

NORMS: tuple[Norm, ...] = ("l2", "linf", "l1")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(6))
def test_within_its_radius_no_sampled_input_has_another_class(norm: Norm, seed: int) -> None:
    network, x = random_network((4, 8, 6, 3), seed), random_point(4, seed)
    radius = fastlin_radius(layers_of(network), x, norm, 1.0)
    assert 0 < radius <= 1
    scale = {"l2": 1.0, "linf": 2.0, "l1": 0.5}[norm]  # `balls` halves and doubles
    points = sample(balls(x, radius * scale)[norm], 4000, seed)
    label = int(network(torch.from_numpy(x).unsqueeze(0)).argmax())
    assert set(network(points).argmax(1).tolist()) == {label}


@pytest.mark.parametrize("seed", range(6))
def test_without_hidden_layers_it_is_the_distance_to_the_nearest_boundary(seed: int) -> None:
    (weight, bias) = layers_of(random_network((5, 4), seed))[0]
    x = random_point(5, seed)
    y = weight @ x + bias
    label, others = int(y.argmax()), np.arange(4) != y.argmax()
    for norm in NORMS:
        sizes = np.linalg.norm(weight[label] - weight[others], DUAL[norm], axis=1)
        exact = float(((y[label] - y[others]) / sizes).min())
        found = fastlin_radius([(weight, bias)], x, norm, 10.0, steps=40)
        assert found == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_what_it_proves_the_walk_proves_and_more_than_the_radius_it_does_not(seed: int) -> None:
    network, x = random_network((4, 8, 6, 3), seed), random_point(4, seed)
    layers = layers_of(network)
    radius = fastlin_radius(layers, x, "l2", 1.0)
    assert reference_walk(layers, x, 0.999 * radius).status != "not_robust"
    assert Certifier.of(network).certify(x, epsilon=0.999 * radius).status == "robust"
    assert radius == 1 or not proves(layers, x, "l2", radius + 1e-4)
