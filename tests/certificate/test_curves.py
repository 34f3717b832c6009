"""The checker's own lines around sigmoids, hyperbolic tangents and products."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from numpy.typing import NDArray

from fgp_vnn.certificate.checker.bounds import Enclosure
from fgp_vnn.certificate.checker.curves import exp, offset, planes, values
from fgp_vnn.certificate.checker.lines import Leaf
from fgp_vnn.certificate.checker.network import AffineMap, CheckedNetwork
from fgp_vnn.certificate.checker.rounding import UNIT
from tests.certificate.maps import affine
from tests.helpers.activation_cases import EXACT, intervals

Array = NDArray[np.float64]
CURVES = ("Sigmoid", "Tanh")


def random_boxes(kind: str, count: int, seed: int) -> tuple[Array, Array]:
    lower, upper = intervals(kind, count, seed)
    return lower.numpy(), upper.numpy()


def places(low: float, high: float) -> list[float]:
    """Ends, zero and points in between, all within an interval."""
    inner = np.linspace(low, high, 17)
    return sorted({min(max(float(z), low), high) for z in (*inner, 0.0)})


def test_exp_is_as_near_as_it_says() -> None:
    random = np.random.default_rng(0)
    halves = (np.arange(-115, 116) + 0.5) * 0.6931471805599453
    x = np.concatenate([random.uniform(-80, 80, 3000), random.normal(size=500) * 1e-9, halves])
    for z, found in zip(x.tolist(), exp(x).tolist(), strict=True):
        true = mpmath.exp(mpf(z))
        assert abs(mpf(found) - true) <= 16 * UNIT * true


@pytest.mark.parametrize("kind", CURVES)
def test_lines_of_any_choice_hold_in_high_precision(kind: str) -> None:
    lower, upper = random_boxes(kind, 400, 1)
    alpha = np.random.default_rng(2).uniform(size=lower.shape)
    alpha[:, ::5], alpha[:, 1::5], alpha[:, 2::5] = 0.0, 1.0, np.nan
    found, (least, greatest) = planes(kind, lower, upper, alpha), values(kind, lower, upper)
    for i, (low, high) in enumerate(zip(lower[0], upper[0], strict=True)):
        below = mpf(float(found.low[0, i])), mpf(float(found.floor[0, i]))
        above = mpf(float(found.high[0, i])), mpf(float(found.ceiling[0, i]))
        for z in map(mpf, places(float(low), float(high))):
            true = EXACT[kind](z)
            assert below[0] * z + below[1] <= true <= above[0] * z + above[1]
            assert mpf(float(least[0, i])) <= true <= mpf(float(greatest[0, i]))


@pytest.mark.parametrize("kind", CURVES)
def test_offsets_hold_for_slopes_that_nobody_would_choose(kind: str) -> None:
    lower, upper = random_boxes(kind, 300, 4)
    slope = np.random.default_rng(5).uniform(-1, 1, size=lower.shape)
    found = offset(kind, lower, upper, slope)
    for i, (low, high) in enumerate(zip(lower[0], upper[0], strict=True)):
        tilt, least = mpf(float(slope[0, i])), mpf(float(found[0, i]))
        for z in map(mpf, places(float(low), float(high))):
            assert tilt * z + least <= EXACT[kind](z)


@pytest.mark.parametrize("kind", CURVES)
def test_lines_lose_little_more_than_they_have_to(kind: str) -> None:
    share = np.linspace(0, 1, 401)[:, None]
    for low, high in ((-1.0, 2.0), (-3.0, -0.5), (0.1, 4.0), (-0.2, 0.2)):
        ends = np.array([[low]]), np.array([[high]])
        found, z = planes(kind, *ends), low + (high - low) * share
        true = np.array([[float(EXACT[kind](mpf(float(p[0]))))] for p in z])
        for gap in (true - found.low * z - found.floor, found.high * z + found.ceiling - true):
            assert -1e-12 <= gap.min() < 1e-3 and gap.max() < 0.9 * (true.max() - true.min())


def test_planes_of_products_hold_exactly() -> None:
    random = np.random.default_rng(3)
    ends = np.sort(random.normal(size=(2, 1, 60)) * 10.0 ** random.uniform(-8, 8, (1, 1, 60)), 0)
    lower, upper = ends
    alpha = np.where(random.uniform(size=lower.shape) < 0.3, np.nan, random.uniform(size=(1, 60)))
    found, (least, greatest) = planes("Mul", lower, upper, alpha), values("Mul", lower, upper)
    for i in range(30):
        sides = [(lower[0, j], (lower[0, j] + upper[0, j]) / 2, upper[0, j]) for j in (i, i + 30)]
        for u, v in product(*sides):
            true = Fraction(u) * Fraction(v)
            low, high = (
                Fraction(slope[0, i]) * Fraction(u)
                + Fraction(slope[0, i + 30]) * Fraction(v)
                + Fraction(offset[0, i])
                for slope, offset in ((found.low, found.floor), (found.high, found.ceiling))
            )
            assert low <= true <= high
            assert Fraction(least[0, i]) <= true <= Fraction(greatest[0, i])


def random_network(seed: int) -> CheckedNetwork:
    """A layer of each kind, the products of halves, with weights of different sizes."""
    random = np.random.default_rng(seed)
    kinds = tuple(random.permutation(["Sigmoid", "Tanh", "Mul", "Relu"]))
    maps: list[AffineMap] = []
    before = 3
    for kind in (*kinds, ""):
        width = 2 if not kind else 6
        weight = (random.normal(size=(width, before)) / before**0.5).astype(np.float32)
        bias = random.normal(size=width).astype(np.float32)
        maps.append(affine({len(maps): weight}, bias))
        before = width // 2 if kind == "Mul" else width
    return CheckedNetwork(tuple(maps), 3, kinds)


def evaluated(network: CheckedNetwork, x: Array) -> tuple[list[Array], Array]:
    """z of each layer and the output at points x [points, inputs]."""
    result, value = [], x
    for layer, part in enumerate(network.maps):
        z = value @ part.weights[layer].T + part.bias
        if layer == len(network.kinds):
            break
        result.append(z)
        kind = network.kinds[layer]
        if kind == "Mul":
            first, second = np.split(z, 2, -1)
            value = first * second
        elif kind == "Relu":
            value = np.maximum(z, 0)
        else:
            value = np.tanh(z) if kind == "Tanh" else 1 / (1 + np.exp(-z))
    return result, z


@pytest.mark.parametrize("seed", range(15))
def test_no_sampled_value_lies_beyond_its_bounds(seed: int) -> None:
    random, network = np.random.default_rng(seed), random_network(seed)
    center, radius = random.normal(size=(1, 3)), random.uniform(0.01, 0.8, size=(1, 3))
    enclosure = Enclosure(network, center - radius, center + radius)
    x = center + radius * random.uniform(-1, 1, size=(500, 3))
    hidden, output = evaluated(network, x)
    for z, low, high in zip(hidden, enclosure.lower, enclosure.upper, strict=True):
        assert (z >= low - 1e-9).all() and (z <= high + 1e-9).all()
    rows = random.normal(size=(1, 4, 2))
    # Assumptions that the first of the points meets, some of them left out.
    told = [np.sign(z[:1]) * (random.uniform(size=z[:1].shape) < 0.3) for z in hidden]
    signs = [part.astype(np.int8) for part in told]
    leaves = [
        Leaf(random.uniform(size=s.shape), s, random.exponential(size=s.shape) * (s != 0))
        for s in signs
    ]
    target = len(network.widths)
    assert (enclosure.least(target, rows) <= (output @ rows[0].T).min(0) + 1e-9).all()
    met = np.all([(z * s >= 0).all(-1) for z, s in zip(hidden, signs, strict=True)], 0)
    assert met.any()
    plain = [leaf._replace(multipliers=0 * leaf.multipliers) for leaf in leaves]
    for some in (leaves, plain):
        least = enclosure.least(target, rows, some)
        assert (least <= (output[met] @ rows[0].T).min(0) + 1e-9).all()


def test_assumptions_make_bounds_of_smooth_layers_tighter() -> None:
    network = random_network(5)
    box = -np.ones((1, 3)), np.ones((1, 3))
    enclosure, rows = Enclosure(network, *box), np.array([[[1.0, -1.0]]])
    target = len(network.widths)
    crossing = [
        (low < 0) & (high > 0) for low, high in zip(enclosure.lower, enclosure.upper, strict=True)
    ]
    assert any(part.any() for part in crossing)
    leaves = [
        Leaf(np.full(part.shape, np.nan), part.astype(np.int8), np.zeros(part.shape))
        for part in crossing
    ]
    assert enclosure.least(target, rows, leaves) > enclosure.least(target, rows)


def test_values_beyond_all_measure_prove_nothing() -> None:
    first, last = affine({0: [[1e60], [1e60]]}, [0.0, 0.0]), affine({1: [[1e-60]]}, [0.0])
    with pytest.raises(OverflowError):
        Enclosure(CheckedNetwork((first, last), 1, ("Mul",)), np.array([[0.0]]), np.array([[1.0]]))
