"""Caps: what half-spaces leave of a ball."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fgp_vnn.domain.caps import Caps, both, dual_norm, recast
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball


def normals(count: int, inputs: int, seed: int) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    rows = torch.randn(count, inputs, generator=source, dtype=torch.float64)
    result: Tensor = rows / torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    return result


def in_ball(ball: L2Ball, count: int, seed: int) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, len(ball.center), generator=source, dtype=torch.float64)
    length = torch.linalg.vector_norm(noise, dim=-1, keepdim=True)
    sizes = torch.rand(count, 1, generator=source, dtype=torch.float64) ** (1 / 3)
    result: Tensor = ball.center + ball.radius * sizes * noise / length
    return result


def some_caps(seed: int) -> Caps:
    ball = L2Ball(torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64), 1.5)
    level = torch.linspace(0, 1.4, 6, dtype=torch.float64).unsqueeze(-1)
    return Caps(ball, normals(6, 3, seed), level)


@pytest.mark.parametrize("seed", range(5))
def test_no_point_of_a_cap_is_above_its_support_and_its_maximiser_reaches_it(seed: int) -> None:
    caps = some_caps(seed)
    assert isinstance(caps.whole, L2Ball)
    points = in_ball(caps.whole, 20_000, seed)
    rows = normals(8, 3, seed + 50).expand(6, -1, -1)
    support = caps.support(rows)  # [6, 8]
    for number in range(6):
        mine = points[caps.at(torch.full((len(points),), number)).contains(points)]
        heights = (mine - caps.center) @ rows[number].T
        assert bool((heights <= support[number] + 1e-12).all())
    reached = ((caps.maximiser(rows) - caps.center) * rows).sum(-1)
    assert torch.allclose(reached, support, rtol=0, atol=1e-12)
    offset = caps.maximiser(rows) - caps.center
    assert bool((torch.linalg.vector_norm(offset, dim=-1) <= 1.5 + 1e-12).all())
    assert bool(((offset * caps.normal.unsqueeze(1)).sum(-1) >= caps.level - 1e-12).all())


@pytest.mark.parametrize("seed", range(5))
def test_a_cap_that_is_cut_once_more_holds_all_points_of_both_half_spaces(seed: int) -> None:
    caps = some_caps(seed)
    assert isinstance(caps.whole, L2Ball)
    normal, level = normals(6, 3, seed + 9), torch.full((6, 1), 0.6, dtype=torch.float64)
    cut = both(caps, normal, level)
    assert bool((cut.level >= torch.maximum(caps.level, level)).all())
    points = in_ball(caps.whole, 20_000, seed)
    other = Caps(caps.whole, normal, level)
    for number in range(6):
        index = torch.full((len(points),), number)
        held = caps.at(index).contains(points) & other.at(index).contains(points)
        assert bool(cut.at(index).contains(points)[held].all())


def test_the_dual_norm_is_what_a_unit_ball_reaches() -> None:
    rows = normals(5, 4, 0)
    zero = torch.zeros(4, dtype=torch.float64)
    for ball in (L2Ball(zero, 1.0), L1Ball(zero, 1.0), Box(zero - 1, zero + 1)):
        assert torch.allclose(dual_norm(ball, rows), ball.support(rows))


@pytest.mark.parametrize("kind", ["box", "l2", "l1"])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_a_half_space_in_float32_holds_all_points_of_the_exact_one(kind: str, far: float) -> None:
    """Each half-space ends at the point that is asked about, so that nothing may be lost at all."""
    random = torch.Generator().manual_seed(int(far))
    center = far + torch.randn(6, generator=random, dtype=torch.float64)
    domains: dict[str, Domain] = {
        "box": Box(center - 0.1, center + 0.1),
        "l2": L2Ball(center, 0.1),
        "l1": L1Ball(center, 0.1),
    }
    exact = domains[kind]
    rounded = exact.to("cpu", torch.float32)
    weight = torch.randn(500, 6, generator=random, dtype=torch.float64)
    points = exact.maximiser(weight.unsqueeze(1)).squeeze(1)
    points = exact.center + torch.rand(500, 1, generator=random).double() * (points - exact.center)
    value = -(weight * (points - exact.center)).sum(-1)
    cast, level = recast(exact, rounded, weight, value)
    assert cast.dtype == level.dtype == torch.float32
    reached = (cast.double() * (points - rounded.center.double())).sum(-1) + level.double()
    assert bool((reached <= 0).all())
    assert float(reached.min()) > -1e-5 * (1 + far)
    same = recast(exact, exact, weight, value)
    assert torch.equal(same[0], weight) and torch.equal(same[1], value)
