"""Supports, half-spaces and caps against rational arithmetic, at all magnitudes."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import pytest
import torch

from fgp_vnn.domain.caps import Caps, both, half_space
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball, along
from tests.helpers.extreme_networks import DTYPES, Exact, dot, exact, matrix


def root(value: Fraction) -> Fraction:
    """At most the square root, to 60 digits."""
    scale = 10**60
    while value and value * scale < 10**60:
        scale *= 10**60
    return Fraction(isqrt(int(value * scale * scale)), scale)


@pytest.mark.parametrize("power", [-44, -30, -20, -3, 0, 10, 20, 35])
@pytest.mark.parametrize("dtype", DTYPES)
def test_supports_are_not_below_what_a_point_reaches(dtype: torch.dtype, power: int) -> None:
    finite = 0
    for seed in range(20):
        source = torch.Generator().manual_seed(seed)
        sizes = 10.0 ** (power + 2 * torch.rand(5, generator=source, dtype=torch.float64))
        row = (torch.randn(5, generator=source, dtype=torch.float64) * sizes).to(dtype)
        radius = float(10.0 ** (min(-power, 37) if seed % 2 else power / 2))
        center = torch.zeros(5, dtype=dtype)
        ball = L2Ball(center, radius).to("cpu", dtype)
        around = torch.full_like(center, radius).clamp(max=1e30)
        for domain in (
            ball, L1Ball(center, radius).to("cpu", dtype), Box(-around, around),
            Clipped(ball, Box(-around / 2, around * 0)),
        ):  # fmt: skip
            reach = domain.support(row.unsqueeze(0))
            upper = reach + domain.unsure(row.unsqueeze(0), reach)
            if bool(upper.isfinite().all()):
                assert highest(domain, exact(row), Fraction(radius)) <= exact(upper)[0]
                finite += 1
    assert finite >= 20


@pytest.mark.parametrize(
    ("sizes", "radius"),
    [((2, 5), (3, 1, 5)), ((3, 2, 5), (3, 1, 5)), ((2, 5), (1, 5)), ((2, 5), (5,))],
    ids=["same rows", "own rows", "one box", "plain"],
)
def test_what_a_box_reaches_is_more_than_products_that_underflow(
    sizes: tuple[int, ...], radius: tuple[int, ...]
) -> None:
    assert bool((along(torch.full(sizes, 1e-30), torch.full(radius, 1e-30)) > 0).all())


def highest(domain: Domain, row: Exact, radius: Fraction) -> Fraction:
    """What a point of the domain reaches along a row; nearly the most."""
    if isinstance(domain, L1Ball):
        return radius * max(abs(v) for v in row)
    if isinstance(domain, Box):
        return dot([abs(v) for v in row], exact(domain.radius))
    length = root(dot(row, row))
    point = [radius * v / length * Fraction(10**30 - 1, 10**30) if length else v for v in row]
    if isinstance(domain, Clipped):
        low, high = exact(domain.clip.lower), exact(domain.clip.upper)
        point = [min(max(p, a), b) for p, a, b in zip(point, low, high, strict=True)]
    return dot(row, point)


@pytest.mark.parametrize("inputs", [3, 20_000])
def test_the_level_of_a_half_space_holds_for_its_stored_normal(inputs: int) -> None:
    """The point of the half-space that is nearest to the centre is beyond the rounded one."""
    for seed in range(3):
        source = torch.Generator().manual_seed(seed)
        weight = torch.rand(1, inputs, generator=source, dtype=torch.float64) + 0.5
        weight = weight * 10.0 ** (20 * seed)
        value = torch.linalg.vector_norm(weight) * 0.7
        ball = L2Ball(torch.zeros(inputs, dtype=torch.float64), 1.0)
        normal, level = half_space(ball, weight, value.reshape(1))
        w, n, v, t = exact(weight), exact(normal), exact(value.reshape(1))[0], exact(level)[0]
        # The point nearest to the centre is -w v / |w|^2, and n . that is at least t |n|.
        square, along = dot(w, w), -dot(n, w) * v
        assert t > 0 and along > 0 and along**2 >= t**2 * dot(n, n) * square**2
        assert t**2 * square <= v**2  # it is no farther than the half-space
        assert float(t) == pytest.approx(0.7, rel=1e-10)


def test_a_level_holds_to_the_side_that_its_normal_was_rounded_to() -> None:
    """A point of the half-space, far from its nearest one in the direction of that rounding."""
    for seed in range(20):
        source = torch.Generator().manual_seed(seed)
        weight = torch.randn(1, 3, generator=source, dtype=torch.float64)
        value = torch.linalg.vector_norm(weight) * 1e-9
        ball = L2Ball(torch.zeros(3, dtype=torch.float64), 1.0)
        normal, level = half_space(ball, weight, value.reshape(1))
        w, n, v, t = exact(weight), exact(normal), exact(value.reshape(1))[0], exact(level)[0]
        square, along = dot(w, w), dot(n, w)
        aside = [a - b * along / square for a, b in zip(n, w, strict=True)]
        length = root(dot(aside, aside))
        far = Fraction(9, 10) / length if length else Fraction(0)
        point = [-a * v / square - far * b for a, b in zip(w, aside, strict=True)]
        assert dot(w, point) + v == 0 and dot(point, point) <= 1
        assert t > 0 and dot(n, point) >= t * root(dot(n, n))


@pytest.mark.parametrize("power", [-150, 0, 100])
@pytest.mark.parametrize("seed", range(4))
def test_points_of_two_half_spaces_are_in_their_joint_cap(seed: int, power: int) -> None:
    source = torch.Generator().manual_seed(seed)
    scale = 10.0**power
    weights = torch.randn(2, 1, 4, generator=source, dtype=torch.float64)
    if seed % 2:
        weights[1] = -weights[0] + 1e-6 * weights[1]  # nearly opposite: what is left is far away
    ball = L2Ball(torch.zeros(4, dtype=torch.float64), scale)
    values = scale * torch.tensor([[0.2], [0.1]], dtype=torch.float64)
    parts = [half_space(ball, w, v) for w, v in zip(weights, values, strict=True)]
    whole = Caps(ball, torch.zeros(1, 4, dtype=torch.float64), values.new_zeros(1, 1))
    cut = both(both(whole, *parts[0]), *parts[1])
    n, level = exact(cut.normal), exact(cut.level)[0]
    rows = torch.randn(1, 6, 4, generator=source, dtype=torch.float64)
    reach = cut.support(rows)
    upper = exact(reach + cut.unsure(rows, reach))
    sides = [(exact(w), exact(v)[0]) for w, v in zip(weights, values, strict=True)]
    square, entries = exact(values.new_tensor([scale]))[0] ** 2, matrix(rows[0])
    inside = 0
    for _ in range(400):
        direction = torch.randn(4, generator=source, dtype=torch.float64)
        direction = direction / torch.linalg.vector_norm(direction) * 0.999
        point = exact(scale * (direction - 0.7 * weights[0, 0] / weights[0, 0].norm()) / 2)
        if dot(point, point) <= square and all(dot(w, point) + v <= 0 for w, v in sides):
            inside += 1
            along = dot(n, point)
            assert level == 0 or (along > 0 and along**2 >= level**2 * dot(n, n))
            heights = [dot(row, point) for row in entries]
            assert all(h <= u for h, u in zip(heights, upper, strict=True))
    assert inside or seed % 2
