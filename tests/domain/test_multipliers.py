"""Sets cut by a half-space: bounds over what is left hold, are sharp, and count their rounding."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
import torch
from torch import Tensor

from fgp_vnn.domain.caps import Caps, left_of
from fgp_vnn.domain.multipliers import cut_support
from fgp_vnn.domain.sets import Box, Domain, L2Ball
from tests.helpers.small_networks import balls, random_point, sample

KINDS = ("l2", "l1", "linf", "clipped")


def directions(count: int, inputs: int, seed: int) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    return torch.randn(count, inputs, generator=source, dtype=torch.float64)


def left_over(kind: str, seed: int, inputs: int = 4) -> tuple[Domain, Tensor, Tensor, Caps]:
    """A domain, weights and values of six half-spaces from thick to thin, and what they leave."""
    domain = balls(random_point(inputs, seed), 0.8)[kind]
    weight = directions(6, inputs, seed + 20)
    part = torch.tensor([-2.0, -0.5, -0.1, 0.2, 0.6, 0.9], dtype=torch.float64)
    value = part * domain.support(-weight.unsqueeze(0)).flatten()
    return domain, weight, value, left_of(domain, weight, value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_no_point_that_a_half_space_leaves_is_above_the_support(kind: str, seed: int) -> None:
    domain, weight, value, caps = left_over(kind, seed)
    points = sample(domain, 20_000, seed)
    rows = directions(8, 4, seed + 50)
    support = caps.support(rows.expand(6, -1, -1))
    for number in range(6):
        met = (points - domain.center) @ weight[number] + value[number] <= 0
        heights = (points[met] - domain.center) @ rows.T
        assert bool((heights <= support[number]).all())
        along = (points[met] - domain.center) @ caps.normal[number]
        assert bool((along >= caps.level[number]).all())
    assert bool((support <= domain.support(rows) + 1e-9).all())


@pytest.mark.parametrize("kind", KINDS)
def test_the_thinner_the_half_space_the_lower_the_support(kind: str) -> None:
    domain, _, _, caps = left_over(kind, 0)
    rows = directions(8, 4, 50).expand(6, -1, -1)
    gone = 1 - caps.support(rows) / domain.support(rows)
    assert float(gone[0].abs().max()) < 1e-9  # it leaves everything
    assert float(gone[5].mean()) > 0.25


@pytest.mark.parametrize("seed", range(30))
def test_a_rectangle_has_the_support_of_its_corners_and_crossings(seed: int) -> None:
    box = Box(torch.tensor([-1.0, 0.5]).double(), torch.tensor([0.5, 2.0]).double())
    weight, row = directions(2, 2, seed)
    value = torch.tensor(0.3 * (seed % 5 - 2), dtype=torch.float64)
    caps = left_of(box, weight.unsqueeze(0), value.reshape(1))
    corners = torch.cartesian_prod(*torch.stack([box.lower, box.upper], -1))
    edges = [(a, b) for a in corners for b in corners]
    heights = []
    for a, b in edges:
        f, g = ((weight * (x - box.center)).sum() + value for x in (a, b))
        if f <= 0:
            heights.append((row * (a - box.center)).sum())
        if (f < 0) != (g < 0):
            crossing = a + (b - a) * f / (f - g)
            heights.append((row * (crossing - box.center)).sum())
    if heights:
        best = torch.stack(heights).max()
        assert float(caps.support(row.reshape(1, 1, 2))) == pytest.approx(float(best), abs=1e-6)
        point = caps.maximiser(row.reshape(1, 1, 2)).flatten()
        assert bool(box.contains(point))
        assert float((weight * (point - box.center)).sum() + value) <= 1e-12
        assert float((row * (point - box.center)).sum()) == pytest.approx(float(best), abs=1e-12)


def fractions(values: Tensor) -> list[Fraction]:
    return [Fraction(float(value)) for value in values.flatten()]


def exact_dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


_MAGNITUDES = {torch.float64: (-160, -20, 0, 100), torch.float32: (-37, -20, 0, 18)}


@pytest.mark.parametrize(
    ("dtype", "power"), [(dtype, power) for dtype, some in _MAGNITUDES.items() for power in some]
)
@pytest.mark.parametrize("seed", range(6))
def test_supports_hold_exactly_at_every_magnitude(
    seed: int, dtype: torch.dtype, power: int
) -> None:
    """In rational numbers, at all corners of a box that lie in the half-space as it is given; its
    hyperplane passes through one of them, and its multipliers are large where weights are small."""
    scale, source = 10.0**power, torch.Generator().manual_seed(seed)
    ends = (torch.rand(2, 6, generator=source, dtype=torch.float64) * scale).to(dtype)
    box = Box(-ends[0], ends[1])
    weight, row = directions(2, 6, seed)
    weight = weight * 10.0 ** (-9 * torch.rand(6, generator=source, dtype=torch.float64))
    weight, row = weight.to(dtype), row.to(dtype)
    center, w, r = fractions(box.center), fractions(weight), fractions(row)
    sides = zip(fractions(ends[0]), fractions(ends[1]), strict=True)
    corners = [
        [x - c for x, c in zip(corner, center, strict=True)]
        for corner in product(*((-a, b) for a, b in sides))
    ]
    along = sorted(exact_dot(w, t) for t in corners)
    value = torch.tensor([float(-along[2])], dtype=dtype)
    caps = left_of(box, weight.unsqueeze(0), value)
    support = fractions(cut_support(box, torch.stack([row, -row]), caps.normal, caps.level))
    inside = [t for t in corners if exact_dot(w, t) + fractions(value)[0] <= 0]
    assert inside
    for t in inside:
        height = exact_dot(r, t)
        assert height <= support[0] and -height <= support[1]
        assert exact_dot(fractions(caps.normal), t) >= fractions(caps.level)[0]


@pytest.mark.parametrize("origin", [0.0, 0.35, -20.0])
def test_levels_from_another_origin_leave_the_same_set(origin: float) -> None:
    box = Box(torch.full((3,), -0.5).double(), torch.ones(3).double())
    begin = torch.full((3,), origin, dtype=torch.float64)
    normal = directions(5, 3, 1)
    normal = normal / normal.abs().sum(-1, keepdim=True)
    level = torch.linspace(-0.2, 0.3, 5).double().unsqueeze(-1)
    shifted = level + (normal * (box.center - begin)).sum(-1, keepdim=True)
    rows = directions(7, 3, 2).expand(5, -1, -1)
    own, other = (Caps(box, normal, level), Caps(box, normal, shifted, begin))
    assert torch.allclose(own.support(rows), other.support(rows), rtol=0, atol=1e-11)
    points = sample(box, 5000, 3)
    for number in range(5):
        inside = other.at(torch.full((len(points),), number)).contains(points)
        heights = (points[inside] - box.center) @ rows[number].T
        assert bool((heights <= other.support(rows)[number]).all())


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("domain", [L2Ball(torch.zeros(3).double(), 1.0), None])
def test_a_half_space_that_is_no_number_leaves_everything(
    domain: Domain | None, value: float
) -> None:
    domain = domain or Box(-torch.ones(3).double(), torch.ones(3).double())
    row = torch.ones(1, 1, 3, dtype=torch.float64)
    for weight in (torch.ones(1, 3).double(), torch.full((1, 3), torch.inf).double()):
        caps = left_of(domain, weight, torch.tensor([value], dtype=torch.float64))
        assert float(caps.support(row)) >= float(domain.support(row)) - 1e-12
    tiny = left_of(domain, torch.full((1, 3), 1e-310).double(), torch.ones(1).double())
    assert float(tiny.support(row)) >= float(domain.support(row)) - 1e-12


def many(seed: int, dtype: torch.dtype, scale: float = 1.0) -> tuple[Box, Tensor, Tensor, Tensor]:
    """A box with many inputs, a half-space that leaves little of it, as a normal [1, inputs] and a
    level [1, 1], and rows [1, rows, inputs], of which some read only a part of the inputs."""
    inputs, source = 110, torch.Generator().manual_seed(seed)
    center, radius = torch.rand(2, inputs, generator=source, dtype=torch.float64) * scale
    box = Box((center - radius).to(dtype), (center + radius).to(dtype))
    normal = directions(1, inputs, seed + 1)
    normal = (normal / normal.abs().sum()).to(dtype)
    level = (0.9 - 0.2 * seed) * box.support(normal.unsqueeze(0))
    rows = directions(4, inputs, seed + 2)
    rows[2:, 20:] = 0
    return box, normal, level.reshape(1, 1), rows.to(dtype).unsqueeze(0)


def least_over_multipliers(box: Box, row: Tensor, normal: Tensor, level: Tensor) -> Fraction:
    """The exact support of what a half-space leaves of a box: its dual is least at 0 or where a
    sign changes."""
    w, n, t = fractions(row), fractions(normal), fractions(level)[0]
    sides = zip(fractions(box.lower), fractions(box.upper), fractions(box.center), strict=True)
    reach = [(low - c, up - c) for low, up, c in sides]
    zero = Fraction(0)
    changes = sorted({zero, *(max(-a / b, zero) for a, b in zip(w, n, strict=True) if b)})

    def value(m: Fraction) -> Fraction:
        moved = [a + m * b for a, b in zip(w, n, strict=True)]
        ends = zip(moved, reach, strict=True)
        return sum((max(v * low, v * up) for v, (low, up) in ends), -m * t)

    first, last = 0, len(changes) - 1  # the dual is convex
    while first < last:
        middle = (first + last) // 2
        falls = value(changes[middle + 1]) < value(changes[middle])
        first, last = (middle + 1, last) if falls else (first, middle)
    return value(changes[first])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_supports_in_boxes_with_many_inputs_hold_and_lack_little(dtype: torch.dtype) -> None:
    lost, could = 0.0, 0.0
    for seed in range(4):
        box, normal, level, rows = many(seed, dtype)
        support = fractions(cut_support(box, rows, normal, level))
        for row, found in zip(rows[0], support, strict=True):
            exact = least_over_multipliers(box, row, normal, level)
            assert found >= exact
            lost += float(found - exact)
            could += float(fractions(box.support(row.unsqueeze(0)))[0] - exact)
    assert could > 10
    assert lost < 0.06 * could


@pytest.mark.parametrize("power", [-30, -18, 18])
def test_supports_in_boxes_with_many_inputs_hold_at_every_magnitude(power: int) -> None:
    box, normal, level, rows = many(0, torch.float32, 10.0**power)
    for some in (rows, rows * 1e-12, rows * 1e12, torch.zeros_like(rows), normal.expand(1, 4, -1)):
        support = cut_support(box, some, normal, level)
        for row, found in zip(some[0], support[0], strict=True):
            exact = least_over_multipliers(box, row, normal, level)
            assert not bool(found.isfinite()) or Fraction(float(found)) >= exact


def test_each_row_of_boxes_with_many_inputs_has_its_own_half_space() -> None:
    box, normal, level, rows = many(0, torch.float64)
    normals = torch.cat([normal, -normal, normal, torch.zeros_like(normal)])
    levels = torch.cat([level, level / 2, -10 * level, torch.zeros_like(level)])
    together = cut_support(box, rows, normals, levels)
    for number in range(4):
        one = slice(number, number + 1)
        alone = cut_support(box, rows, normals[one], levels[one])
        assert torch.allclose(together[one], alone, rtol=1e-3, atol=0)
    whole = box.support(rows[0])
    assert torch.allclose(together[2:], whole.expand(2, -1), rtol=1e-9)  # nothing is cut off
    assert bool((together[:2] < whole).any(-1).all())
