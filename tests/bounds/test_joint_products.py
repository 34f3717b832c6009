"""Products that are bounded together: the bounds hold, and lose less than plane by plane."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds.backward import Backward, backward
from fgp_vnn.bounds.joint_products import regain
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.activations.product import Product
from fgp_vnn.network.model import Dense, Network
from tests.helpers.random_networks import generator, normal


def both_passes(network: Network, box: Box) -> tuple[Backward, Backward]:
    """A backward pass of all outputs in each box, and the same with what products regain."""
    bounds = root_bounds(network, box, budget=UNLIMITED)
    rounding, depth = Rounding(network, box, bounds), len(network.layers)
    rows = torch.eye(network.outputs, dtype=network.dtype).unsqueeze(0)
    passed = backward(network, box, depth, rows, bounds.lines(), rounding=rounding)
    return passed, regain(network, box, bounds, passed, rounding)[0]


def random_products(seed: int) -> Network:
    """ReLUs, products of affine functions of them and of the input, and sums of these."""
    random = generator(seed)
    first = Dense((0,), (normal(random, 4, 3),), normal(random, 4))
    second = Dense((0, 1), (normal(random, 6, 3), normal(random, 6, 4)), normal(random, 6))
    left, right = torch.randint(0, 6, (2, 7), generator=random)
    last = Dense((0, 2), (normal(random, 3, 3), normal(random, 3, 7)), normal(random, 3))
    return Network((first, second), last, 3, (RELU, Product(left, right)))


def products_of_relus(seed: int) -> Network:
    """Two products of sums of ReLUs, whose lines are far from these."""
    random = generator(seed)
    first = Dense((0,), (3 * normal(random, 6, 3),), normal(random, 6))
    second = Dense((1,), (normal(random, 4, 6),), normal(random, 4))
    left, right = torch.randint(0, 4, (2, 2), generator=random)
    last = Dense((2,), (normal(random, 3, 2),), normal(random, 3))
    return Network((first, second), last, 3, (RELU, Product(left, right)))


def boxes(seed: int, size: float, dtype: torch.dtype) -> Box:
    center = normal(generator(seed), 5, 3).to(dtype)
    return Box(center - size, center + size)


def check_samples(network: Network, box: Box, count: int, seed: int) -> None:
    """No sampled value is below the bounds of its box, or below their linear functions."""
    passed, better = both_passes(network.to("cpu", box.lower.dtype), box)
    assert bool((better.least >= passed.least).all())
    share = torch.rand(count, 3, generator=generator(seed)).double()
    share[:64] = share[:64].round()
    for i in range(len(box.lower)):
        low, high = box.lower[i].double(), box.upper[i].double()
        points = low + (high - low) * share
        y = network(points)
        linear = (points - box.center[i].double()) @ better.weight[i].double().T
        error = (better.nominal - better.least)[i].double()
        slack = 1e-12 * y.abs().max()
        assert bool((y >= better.least[i].double() - slack).all())
        assert bool((y >= linear + better.constant[i].double() - error - slack).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [1e-6, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_sampled_value_is_below_the_linear_bounds(
    seed: int, size: float, dtype: torch.dtype
) -> None:
    check_samples(random_products(seed), boxes(seed, size, dtype), 300, seed)


@pytest.mark.parametrize("size", [0.2, 0.5])
@pytest.mark.parametrize("seed", range(15, 27))
def test_no_sampled_value_is_below_where_factors_bend(seed: int, size: float) -> None:
    check_samples(products_of_relus(seed), boxes(seed, size, torch.float64), 3000, seed)


def concave(matrix: Tensor) -> Network:
    """-x' M x as the sum of products of x_i and (M x)_i."""
    count = len(matrix)
    layer = Dense((0,), (torch.cat([torch.eye(count).double(), matrix]),), torch.zeros(2 * count))
    numbers = torch.arange(count)
    last = Dense((1,), (-torch.ones(1, count).double(),), torch.zeros(1).double())
    layer = Dense(layer.sources, layer.weights, layer.bias.double())
    return Network((layer,), last, count, (Product(numbers, numbers + count),))


def test_planes_above_a_convex_form_lose_nothing_together() -> None:
    """x' M x with M = R' R >= 0 bounded from below: its tangent in the middle is a lower bound."""
    half = normal(generator(0), 4, 4)
    network = concave(-half.T @ half)  # the sum is + x' R' R x
    center, radius = normal(generator(1), 1, 4), 0.3
    box = Box(center - radius, center + radius)
    passed, better = both_passes(network, box)
    gradient = 2 * (center @ half.T @ half)
    tangent = float((center @ half.T @ half @ center.T) - radius * gradient.abs().sum())
    assert abs(float(better.least) - tangent) < 1e-9
    assert float(passed.least) < tangent - 0.1


def test_forms_that_curve_down_lose_what_they_curve() -> None:
    """-x' x over a box of radius r around 0 is least at its corners."""
    network = concave(torch.eye(3).double())
    box = Box(-torch.ones(1, 3).double(), torch.ones(1, 3).double())
    _, better = both_passes(network, box)
    assert -3 - 1e-9 <= float(better.least) <= -3 + 1e-12


def test_what_overflows_regains_nothing() -> None:
    network = concave(1e200 * torch.eye(2).double())
    far = torch.full((1, 2), 1e200, dtype=torch.float64)
    passed, better = both_passes(network, Box(-far, far))
    assert bool((better.least == passed.least).all())


def test_a_network_without_products_is_left_as_it_is() -> None:
    network = Network((), Dense((0,), (torch.eye(2).double(),), torch.zeros(2).double()), 2)
    passed, better = both_passes(
        network, Box(-torch.ones(1, 2).double(), torch.ones(1, 2).double())
    )
    assert better is passed


def test_planes_that_are_not_those_of_the_middle_regain_nothing() -> None:
    one = torch.ones(1, 1)
    zero, place = torch.zeros(1), torch.zeros(1, dtype=torch.long)
    square = Product(place, place)
    wide = Network(
        (Dense((0,), (one.double(),), zero.double()),),
        Dense((1,), (one.double(),), zero.double()),
        1,
        (square,),
    )
    lower = torch.rand(200, 1, generator=generator(3), dtype=torch.float64) + 0.1
    box = Box(lower, lower + 1 / 3)
    # Rounded to float32 one by one, many bounds no longer have the middle that their planes have.
    bounds = root_bounds(wide, box, budget=UNLIMITED).to(torch.float32)
    network, small = wide.to("cpu", torch.float32), box.to("cpu", torch.float32)
    rounding = Rounding(network, small, bounds)
    rows = torch.ones(1, 1, 1)
    passed = backward(network, small, 1, rows, bounds.lines(), rounding=rounding)
    gained = (regain(network, small, bounds, passed, rounding)[0].least - passed.least)[:, 0]
    envelope, middle = (
        bounds.envelopes[0],
        (bounds.lower[0].double() + bounds.upper[0].double()) / 2,
    )
    assert envelope is not None
    moved = (envelope.low[1] != middle.float()).any(-1)
    assert bool(moved.any()) and bool((gained[moved] == 0).all())
    assert not bool(moved.all()) and bool((gained[~moved] > 0).all())
