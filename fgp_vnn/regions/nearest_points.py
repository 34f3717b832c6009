"""The points of half-spaces nearest to a domain's centre, and proved bounds on their distances.

The weighted sum of the constraints is positive in t times the domain while
sum m_i b_i > t h(-sum m_i a_i): so any multipliers m >= 0 give a lower bound on the distance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.regions.halfspaces import HalfSpaces, combine, part_within_gap, sum_error
from fgp_vnn.regions.projections import further, products, scaled, step_length


def nearest(
    domain: Domain, spaces: HalfSpaces, budget: Budget, *, steps: int, look: int
) -> tuple[Tensor, Tensor]:
    """Lower bounds [polyhedra], as parts of the domain, on the distances from the centre to the
    intersections of half-spaces, and the points [polyhedra, inputs] that the ascent reached."""
    _, now = scaled(spaces)
    step = step_length(now.rows)
    multipliers = torch.zeros_like(now.values)
    best = multipliers.new_zeros(len(multipliers))
    ahead, momentum = multipliers, 1.0
    for count in range(1, steps + 1):
        slack = now.values - products(now.rows, combine(ahead, now.rows))
        new = torch.addcmul(ahead, step, slack).clamp_(min=0)
        ahead, momentum = further(multipliers, new, momentum)
        multipliers = new
        if count % look == 0:
            best = torch.maximum(best, _part(domain, now, multipliers))
            if budget.expired():
                break
    if isinstance(domain, L2Ball):
        multipliers = _active(now, multipliers, budget)
        best = torch.maximum(best, _part(domain, now, multipliers))
    return best, domain.center - combine(multipliers, now.rows)


def nearest_in_norm(
    domain: Domain, spaces: HalfSpaces, budget: Budget, *, steps: int, look: int
) -> tuple[Tensor, Tensor]:
    """The same as `nearest` for any norm, by primal-dual steps (Chambolle and Pock, 2011).

    With u = x - c they seek the saddle point of |u| + m . (rows u + values) over u and m >= 0. The
    step of u is u - P(u), with P the projection onto the ball of the dual norm. Restarts from the
    mean of the steps make the method fast on polyhedra.
    """
    _, now = scaled(spaces)
    length = (step_length(now.rows) * 0.9).sqrt()
    unit = _dual_ball(domain, now.rows)
    multipliers, point = torch.zeros_like(now.values), torch.zeros_like(now.rows[:, 0])
    sums, count = (multipliers, point), 0
    best, points = multipliers.new_zeros(len(multipliers)), point
    for step in range(1, steps + 1):
        moved = (point - length * combine(multipliers, now.rows)) / length
        new = length * (moved - unit.project(moved))
        slack = products(now.rows, 2 * new - point) + now.values
        multipliers, point = torch.addcmul(multipliers, length, slack).clamp_(min=0), new
        sums, count = (sums[0] + multipliers, sums[1] + point), count + 1
        if step % look and step != steps:
            continue
        mean = sums[0] / count, sums[1] / count
        last, average = (_part(domain, now, m) for m in (multipliers, mean[0]))
        points = torch.where((average > last).unsqueeze(-1), mean[1], point)
        best = torch.maximum(best, torch.maximum(last, average))
        if budget.expired():
            break
        if step % (4 * look) == 0:
            multipliers, point = mean
            sums, count = (torch.zeros_like(multipliers), torch.zeros_like(point)), 0
    return best, domain.center + points


def _part(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> Tensor:
    """The part of the domain [polyhedra] in which the multipliers prove the intersections empty."""
    gap = (multipliers * spaces.values).sum(-1) - sum_error(domain, spaces, multipliers)
    return part_within_gap(gap, domain.support(-combine(multipliers, spaces.rows)))


def _dual_ball(domain: Domain, like: Tensor) -> Domain:
    """The unit ball of the norm that is dual to the domain's."""
    zero = torch.zeros_like(like[0, 0])
    if isinstance(domain, Box):
        return L1Ball(zero, 1.0)
    if isinstance(domain, L1Ball):
        return Box(zero - 1, zero + 1)
    if isinstance(domain, L2Ball):
        return L2Ball(zero, 1.0)
    raise TypeError(f"a {type(domain).__name__} is no ball of a norm")


def _active(spaces: HalfSpaces, multipliers: Tensor, budget: Budget) -> Tensor:
    """The multipliers that solve the active constraints exactly.

    At the nearest point, the constraints with a positive multiplier hold with equality: rows rows^T
    m = values, a linear system once they are known. Constraints whose multiplier comes out negative
    are dropped.
    """
    count = min(spaces.rows.shape[1], spaces.rows.shape[2] + 1)
    top = multipliers.topk(count, dim=-1)
    index = top.indices.unsqueeze(-1).expand(-1, -1, spaces.rows.shape[2])
    rows, values = spaces.rows.gather(1, index), spaces.values.gather(1, top.indices)
    gram = rows @ rows.transpose(-1, -2)
    eye = torch.eye(count, dtype=gram.dtype, device=gram.device)
    best, holds = top.values, top.values > 1e-7 * top.values.amax(-1, keepdim=True)
    for _ in range(count):
        if budget.expired():
            break
        mask = holds.to(gram.dtype)
        system = gram * mask.unsqueeze(-1) * mask.unsqueeze(-2)
        system = system + torch.diag_embed(1 - mask) + 1e-13 * eye
        solved = torch.linalg.solve_ex(system, values * mask).result
        good = solved.isfinite().all(-1, keepdim=True) & (solved >= 0).all(-1, keepdim=True)
        best = torch.where(good, solved, best)
        holds = holds & (good | (solved > 0))
        if bool(good.all()):
            break
    return torch.zeros_like(multipliers).scatter(-1, top.indices, best)
