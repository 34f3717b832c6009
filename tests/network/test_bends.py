"""Ranges of second derivatives, in high precision."""

from __future__ import annotations

import mpmath
import pytest
import torch
from mpmath import mpf, workprec

from fgp_vnn.network.activations.bends import bend_of
from fgp_vnn.network.activations.gates import SOFTPLUS
from fgp_vnn.network.activations.powers import EXP
from fgp_vnn.network.activations.product import Product
from fgp_vnn.network.activations.sigmoids import SIGMOID, TANH
from fgp_vnn.network.activations.waves import COS, SIN
from tests.helpers.random_networks import generator


def _sigmoid(z: mpf) -> mpf:
    s = 1 / (1 + mpmath.exp(-z))
    return s * (1 - s) * (1 - 2 * s)


def _tanh(z: mpf) -> mpf:
    t = mpmath.tanh(z)
    return -2 * t * (1 - t * t)


SECOND = {
    SIGMOID: _sigmoid,
    TANH: _tanh,
    SIN: lambda z: -mpmath.sin(z),
    COS: lambda z: -mpmath.cos(z),
    EXP: mpmath.exp,
}


@pytest.mark.parametrize("width", [0.0, 1e-9, 0.01, 1.0, 10.0])
@pytest.mark.parametrize("curve", SECOND, ids=lambda curve: curve.name)
def test_ranges_hold_in_high_precision(curve: object, width: float) -> None:
    bend = bend_of(curve)  # type: ignore[arg-type]
    assert bend is not None
    random, count = generator(1), 200
    lower = 8 * torch.rand(count, generator=random, dtype=torch.float64) - 4
    lower[::10] = 40 * lower[::10]
    upper = lower + width * torch.rand(count, generator=random, dtype=torch.float64)
    least, greatest = bend.range(lower, upper)
    share = torch.linspace(0, 1, 7).double().unsqueeze(-1)
    inside = torch.minimum(lower + (upper - lower) * share, upper)
    with workprec(200):
        for i in range(count):
            low, high = mpf(float(least[i])), mpf(float(greatest[i]))
            assert all(low <= SECOND[curve](mpf(float(z))) <= high for z in inside[:, i])  # type: ignore[index]


@pytest.mark.parametrize("curve", SECOND, ids=lambda curve: curve.name)
def test_ranges_are_narrow_over_narrow_intervals(curve: object) -> None:
    bend = bend_of(curve)  # type: ignore[arg-type]
    assert bend is not None
    at = torch.linspace(-3, 3, 50).double()
    least, greatest = bend.range(at, at + 1e-3)
    assert bool((greatest - least < 1e-3 * 25).all())


def test_the_computed_derivative_is_as_close_as_it_says() -> None:
    at = 3 * torch.randn(400, generator=generator(2), dtype=torch.float64)
    first = {
        SIGMOID: lambda z: mpmath.exp(-z) / (1 + mpmath.exp(-z)) ** 2,
        TANH: lambda z: 1 - mpmath.tanh(z) ** 2,
        SIN: mpmath.cos,
        COS: lambda z: -mpmath.sin(z),
        EXP: mpmath.exp,
    }
    with workprec(200):
        for curve, exact in first.items():
            bend = bend_of(curve)
            assert bend is not None
            size = bend.slope_size(at)
            for z, slope, error in zip(at, curve.derivative(at), size, strict=True):
                off = abs(exact(mpf(float(z))) - mpf(float(slope)))
                assert off <= 16 * 2.0**-52 * float(error)


def test_other_activations_have_none() -> None:
    assert bend_of(SOFTPLUS) is None
    assert bend_of(Product(torch.zeros(1).long(), torch.zeros(1).long())) is None
