"""Projections onto one half-space, and alternating projections onto several.

Alternating projections settle the regions that one projection leaves inconclusive.

Wanted: a point of the domain in the half-spaces a_i . (x - c) + b_i <= 0 (the region's neurons and
a disjunct's rows). For multipliers m >= 0 let x(m) be the projection of c - sum m_i a_i onto the
domain. The method ascends the concave dual of "the point nearest to c", whose gradient at m is the
value of the constraints at x(m). Points x(m) are candidates, and the multipliers of any iteration
may prove that there is no such point (`halfspaces.contradiction`). A box is treated as a cube: its
inputs are measured in units of its own half-sides.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.regions.gaps import Gap
from fgp_vnn.regions.halfspaces import HalfSpaces, combine, contradiction
from fgp_vnn.strategy import Projections


def project_onto_half_spaces(domain: Domain, rows: Tensor, values: Tensor) -> Tensor:
    """The domain's centre projected onto each half-space row . (x - center) + value <= 0, in the
    domain's own norm; [..., rows, inputs]. It does not move where value <= 0.

    A ball scaled by t = value / h(-row) just touches the half-space, at t times its minimiser.
    """
    center = domain.center.unsqueeze(-2)
    tiny = torch.finfo(rows.dtype).tiny
    scale = (values.clamp(min=0) / domain.support(-rows).clamp(min=tiny)).clamp(max=1)
    return center + scale.unsqueeze(-1) * (domain.maximiser(-rows) - center)


class Settled(NamedTuple):
    """A counterexample, or the polyhedra proved to hold none, with the evidence."""

    found: Counterexample | None
    closed: Tensor  # [polyhedra]
    multipliers: Tensor  # [polyhedra, constraints] a contradiction where a polyhedron is closed
    lps: int = 0  # programs solved
    gaps: tuple[Gap, ...] = ()  # gaps that programs left open


def alternate(
    domain: Domain,
    spaces: HalfSpaces,
    confirm: Confirm,
    budget: Budget,
    steps: int,
    how: Projections,
) -> Settled:
    """Look for a counterexample in the polyhedra, or for evidence that they hold no point."""
    closed = torch.zeros(len(spaces.values), dtype=torch.bool, device=spaces.values.device)
    left = torch.arange(len(closed), device=closed.device)
    evidence = torch.zeros_like(spaces.values)
    sides, tiny = sides_of(domain), torch.finfo(spaces.values.dtype).tiny
    size, now = scaled(spaces._replace(rows=spaces.rows * sides))
    step = step_length(now.rows)
    multipliers = torch.zeros_like(now.values)
    ahead, momentum = multipliers, 1.0
    for count in range(1, steps + 1):
        point = domain.project(domain.center - combine(ahead, now.rows) * sides)
        # Where a side is 0, so are the rows and the numerator.
        offset = (point - domain.center) / sides.clamp(min=tiny)
        slack = products(now.rows, offset) + now.values
        new = torch.addcmul(ahead, step, slack).clamp_(min=0)
        ahead, momentum = further(multipliers, new, momentum)
        multipliers = new
        if count % how.look and count != steps:
            continue
        inside = slack.amax(-1) <= how.inside
        due = count % (how.offer_looks * how.look) == 0 or count == steps
        if due or bool(inside.any()):
            found = confirm(point)
            if found is not None:
                return Settled(found, closed, evidence)
        weights = multipliers / size
        proved = contradiction(domain, spaces, weights)
        closed[left[proved]] = True
        evidence[left[proved]] = weights[proved]
        if budget.expired() or bool(proved.all()):
            break
        if bool(proved.any()):
            kept = torch.nonzero(~proved).flatten()
            spaces, now = spaces.at(kept), now.at(kept)
            left, step, size = left[kept], step[kept], size[kept]
            multipliers, ahead = multipliers[kept], ahead[kept]
    return Settled(None, closed, evidence)


def sides_of(domain: Domain) -> Tensor:
    """The unit of each input [inputs]: the half-sides of a box; 1 for a ball, which has the same
    size along all inputs."""
    return domain.radius if isinstance(domain, Box) else torch.ones_like(domain.center)


def scaled(spaces: HalfSpaces) -> tuple[Tensor, HalfSpaces]:
    """The lengths [polyhedra, constraints] of the rows, and the half-spaces with unit rows."""
    size: Tensor = torch.linalg.vector_norm(spaces.rows, dim=-1)
    size = torch.where(size > 0, size, torch.ones_like(size))
    rows = spaces.rows / size.unsqueeze(-1)
    return size, HalfSpaces(rows, spaces.values / size, spaces.errors / size)


def further(before: Tensor, now: Tensor, momentum: float) -> tuple[Tensor, float]:
    """The extrapolated point of an accelerated ascent (Nesterov, 1983), and its next momentum."""
    following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
    return torch.lerp(before, now, 1 + (momentum - 1) / following).clamp_(min=0), following


def step_length(rows: Tensor) -> Tensor:
    """1 / the greatest eigenvalue of rows rows^T, estimated by power iteration; [polyhedra, 1].

    A step that is too long costs convergence, not soundness. Rows have length 1 or 0, so the
    eigenvalue is at least 1 unless all are 0.
    """
    # The start must not be orthogonal to the eigenvector; ones are, for two opposite rows.
    places = torch.arange(rows.shape[1], dtype=rows.dtype, device=rows.device)
    vector = (1.5 + torch.sin(7 * places)).expand(rows.shape[:2])
    growth = vector.new_ones(len(vector), 1)
    for _ in range(8):
        vector = products(rows, combine(vector, rows))
        growth = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
        vector = vector / growth.clamp(min=torch.finfo(rows.dtype).tiny)
    return 1 / (1.1 * growth.clamp(min=1))


def products(rows: Tensor, points: Tensor) -> Tensor:
    """a_i . point, [polyhedra, constraints]."""
    return torch.bmm(rows, points.unsqueeze(-1)).squeeze(-1)
