"""Linear programs over regions, by primal-dual steps (Chambolle and Pock, 2011).

The minimum of cost . u over the u = x - c of the domain with row . u + value <= 0 for all rows is
the saddle point of cost . u + m . (rows u + values) over u and multipliers m >= 0. Any multipliers
give a lower bound, and any point is a candidate; the caller has to check both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.regions.halfspaces import HalfSpaces, combine
from fgp_vnn.regions.projections import products, scaled, sides_of, step_length
from fgp_vnn.strategy import Projections


class LinearPrograms(NamedTuple):
    """min cost . (x - c) + constant over the domain, with rows . (x - c) + values <= 0."""

    cost: Tensor  # [polyhedra, inputs]
    constant: Tensor  # [polyhedra]
    rows: Tensor  # [polyhedra, constraints, inputs]
    values: Tensor  # [polyhedra, constraints]


def lowest_points(
    domain: Domain,
    programs: LinearPrograms,
    look: Callable[[Tensor], Tensor],
    budget: Budget,
    effort: Projections,
) -> Tensor:
    """Multipliers [polyhedra, constraints] that give high lower bounds.

    `look` receives points [points, inputs] of the domain and returns the bound [polyhedra] at which
    a polyhedron is done. Inputs are measured in the half-sides of a box, which makes it a cube.
    Restarts from the mean of the steps speed up the method on polyhedra, and so does a weight that
    balances the moves of points and multipliers (Applegate et al., 2021).
    """
    side = sides_of(domain)
    zero = torch.zeros_like(programs.values)
    size, now = scaled(HalfSpaces(programs.rows * side, programs.values, zero))
    cost = programs.cost * side
    length = torch.linalg.vector_norm(cost, dim=-1, keepdim=True)
    length = length.clamp(min=torch.finfo(cost.dtype).tiny)
    cost = cost / length
    step = (step_length(now.rows) * 0.9).sqrt()
    multipliers, point = zero, torch.zeros_like(cost)
    begun, weight = (multipliers, point), torch.ones_like(length)
    sums, count = (multipliers, point), 0
    best, bound = multipliers, torch.full_like(programs.constant, -torch.inf)
    for number in range(1, effort.extreme + 1):
        new = _inside(domain, point - weight * step * (cost + combine(multipliers, now.rows)))
        slack = products(now.rows, 2 * new - point) + now.values
        multipliers, point = torch.addcmul(multipliers, step / weight, slack).clamp_(min=0), new
        sums, count = (sums[0] + multipliers, sums[1] + point), count + 1
        if number % effort.extreme_look and number != effort.extreme:
            continue
        mean = sums[0] / count, sums[1] / count
        for tried in (multipliers, mean[0]):
            total = cost + combine(tried, now.rows)
            value = (tried * now.values).sum(-1) - _support(domain, -total)
            higher = value > bound
            bound = torch.where(higher, value, bound)
            best = torch.where(higher.unsqueeze(-1), tried, best)
        needed = look(domain.center + side * torch.cat([point, mean[1]]))
        proved = length.squeeze(-1) * bound + programs.constant
        if bool((proved > needed).all()) or budget.expired():
            break
        if number % (effort.restart * effort.extreme_look) == 0:
            multipliers, point = mean
            weight, begun = _balanced(weight, begun, mean), mean
            sums, count = (torch.zeros_like(multipliers), torch.zeros_like(point)), 0
    found: Tensor = best * length / size
    return found


def _balanced(weight: Tensor, before: tuple[Tensor, Tensor], now: tuple[Tensor, Tensor]) -> Tensor:
    """The weight [polyhedra, 1], moved halfway (in logarithms) to the ratio of the distances that
    points and multipliers have moved since the last restart."""
    dual, primal = (
        torch.linalg.vector_norm(b - a, dim=-1, keepdim=True)
        for a, b in zip(before, now, strict=True)
    )
    moved = (primal > 0) & (dual > 0)
    ratio = (weight * primal / dual.clamp(min=torch.finfo(dual.dtype).tiny)).sqrt()
    return torch.where(moved, ratio.clamp(1e-4, 1e4), weight)


def _support(domain: Domain, rows: Tensor) -> Tensor:
    """The support [polyhedra] of the domain at rows [polyhedra, inputs], with inputs in
    half-sides."""
    return rows.abs().sum(-1) if isinstance(domain, Box) else domain.support(rows)


def _inside(domain: Domain, offset: Tensor) -> Tensor:
    """The offset [polyhedra, inputs] from the centre, in half-sides, projected into the domain."""
    if isinstance(domain, Box):
        return offset.clamp(-1, 1)
    return domain.project(domain.center + offset) - domain.center
