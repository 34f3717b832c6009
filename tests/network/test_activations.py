"""Lines of activations against their functions in high precision."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from mpmath import mpf

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.activations.base import Activation, Envelope
from fgp_vnn.network.activations.product import Product
from fgp_vnn.network.activations.table import ACTIVATIONS
from tests.helpers.activation_cases import (
    EXACT,
    JUMPS,
    WITHIN,
    curves,
    intervals,
    tightness,
    violations,
)
from tests.helpers.wide_functions import WIDE

NAMES = sorted(curves())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_lines_hold_in_high_precision(name: str, dtype: torch.dtype) -> None:
    lower, upper = intervals(name, 1200, 7)  # many more in scripts/evaluation/activation_lines.py
    bad, undecided = violations(curves()[name], name, lower.to(dtype), upper.to(dtype))
    assert not bad
    assert undecided < 20 or np.finfo(np.longdouble).eps == np.finfo(np.float64).eps


@pytest.mark.parametrize("name", sorted(WIDE))
def test_long_double_encloses_what_mpmath_says(name: str) -> None:
    lower, upper = intervals(name, 200, 5)
    z = torch.cat([lower, upper]).numpy()
    least, greatest = WIDE[name].enclosure(z.astype(np.longdouble))
    for place, low, high in zip(z.flat, least.flat, greatest.flat, strict=True):
        exact = EXACT[name](mpf(float(place)))
        assert _whole(low) <= exact <= _whole(high), place


def _whole(number: np.longdouble) -> mpf:
    """A long double as it is, in the digits of mpmath."""
    part, exponent = np.frexp(number)
    high = float(part)
    return mpmath.ldexp(mpf(high) + mpf(float(part - np.longdouble(high))), int(exponent))


@pytest.mark.parametrize("name", sorted(set(NAMES) - JUMPS))
def test_lines_touch_their_function_where_it_has_no_jump(name: str) -> None:
    lower, upper = intervals(name, 500, 11)
    usual = (lower.abs() < 5) & (upper.abs() < 5) & (upper - lower > 1e-3)
    if name in ("Log", "Sqrt", "Pow -0.5", "Pow 1.5", "Reciprocal"):
        usual = usual & (torch.minimum(lower.abs(), upper.abs()) > 0.1)
    curve = curves()[name]
    found = tightness(curve, lower, upper)[:, usual[0]]
    height = (curve.value(upper) - curve.value(lower)).abs()[usual] + (upper - lower)[usual]
    assert bool((found <= 0.01 * height).all())


@pytest.mark.parametrize("name", ["Reciprocal", "Log", "Sqrt", "Pow -0.5", "Pow 1.5"])
def test_an_interval_outside_of_the_domain_has_no_bounds(name: str) -> None:
    lower, upper = torch.tensor([[-1.0, -1e-9, -3.0]]), torch.tensor([[1.0, 2.0, 1e-30]])
    envelope = curves()[name].envelope(lower.double(), upper.double())
    assert bool((envelope.ceiling == torch.inf).all())
    assert bool((envelope.greatest == torch.inf).all())


def test_an_interval_with_a_pole_has_no_bounds_on_either_side() -> None:
    """1 / 0 is infinity or minus infinity, by the sign of the 0."""
    lower, upper = torch.tensor([[-1.0, 0.0, -1.0]]), torch.tensor([[1.0, 1.0, 0.0]])
    envelope = curves()["Reciprocal"].envelope(lower.double(), upper.double())
    assert bool((torch.cat([envelope.ceiling, -envelope.floor]) == torch.inf).all())
    assert bool((torch.cat([envelope.greatest, -envelope.least]) == torch.inf).all())


def test_every_operator_of_the_table_has_an_exact_function() -> None:
    assert set(ACTIVATIONS) <= set(EXACT)


def test_gradients_are_those_of_the_functions() -> None:
    flat = JUMPS  # straight-through ones
    places = torch.tensor([0.3, 0.7, 1.3, 2.6, 3.7], dtype=torch.float64)
    for name, curve in curves().items():
        low, high = WITHIN.get(name, (-5.0, 5.0))
        z = (places - 2) / 2 * 0.9 if high < 2 else places + max(low, 0)
        if name not in flat:
            step = 1e-6
            slope = (curve.value(z + step) - curve.value(z - step)) / (2 * step)
            assert torch.allclose(curve.pull(z, torch.ones_like(z)), slope, atol=1e-6), name


def test_planes_hold_at_random_places_of_the_box() -> None:
    random = torch.Generator().manual_seed(0)
    ends = 10.0 ** (6 * torch.rand(2, 400, generator=random, dtype=torch.float64) - 3)
    ends = ends * (torch.randint(0, 2, ends.shape, generator=random) * 2 - 1)
    lower, upper = ends.amin(0, keepdim=True), ends.amax(0, keepdim=True)
    product = Product(torch.arange(200), torch.arange(200, 400))
    for dtype in (torch.float64, torch.float32):
        envelope = product.envelope(lower.to(dtype), upper.to(dtype))
        low, up = lower.to(dtype).double()[0], upper.to(dtype).double()[0]
        shares = torch.rand(6, 400, generator=random, dtype=torch.float64)
        shares[:3] = shares[:3].round()  # corners, where the planes touch
        for share in shares:
            z = torch.minimum(torch.maximum(low + share * (up - low), low), up)
            for i in range(200):
                u, v = mpf(float(z[i])), mpf(float(z[200 + i]))
                for line in range(3):
                    sides = (
                        (1, envelope.low, envelope.floor),
                        (-1, envelope.high, envelope.ceiling),
                    )
                    for sign, slopes, offsets in sides:
                        p, q = (mpf(float(slopes[line, 0, j])) for j in (i, 200 + i))
                        plane = p * u + q * v + mpf(float(offsets[line, 0, i]))
                        assert sign * (u * v - plane) >= 0


class _Moved:
    """An activation with other lines than its own."""

    def __init__(self, curve: Activation, envelope: Envelope) -> None:
        self._envelope, self.value = envelope, curve.value

    def envelope(self, lower: torch.Tensor, upper: torch.Tensor) -> Envelope:
        return self._envelope


@pytest.mark.parametrize("name", ["Sigmoid", "Tanh", "Exp", "SiLU", "Gelu", "Sin", "Square"])
def test_a_line_that_is_moved_by_a_thousandth_is_found_out(name: str) -> None:
    curve = curves()[name]
    lower, upper = intervals(name, 100, 3)
    keep = (lower.abs() < 5) & (upper.abs() < 5) & (upper - lower > 0.1)
    lower, upper = lower[keep].unsqueeze(0), upper[keep].unsqueeze(0)
    envelope = curve.envelope(lower, upper)
    height = 0.001 * (1 + envelope.greatest - envelope.least)
    for moved in (
        envelope._replace(floor=envelope.floor + height),
        envelope._replace(ceiling=envelope.ceiling - height),
        envelope._replace(least=envelope.least + height),
    ):
        assert violations(_Moved(curve, moved), name, lower, upper)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Elu", {"alpha": -1.0}),
        ("Celu", {"alpha": -1.0}),
        ("Celu", {"alpha": 0.0}),
        ("Selu", {"alpha": -1.0}),
        ("Selu", {"gamma": -1.0}),
        ("Elu", {"alpha": float("nan")}),
    ],
)
def test_factors_that_turn_the_curvature_are_refused_by_name(
    name: str, given: dict[str, float]
) -> None:
    with pytest.raises(UnsupportedError, match=name):
        ACTIVATIONS[name](given)
