"""Half-spaces, and proofs that no point of a domain lies in all of them.

A polyhedron is the set of points x with a_i . (x - c) + b_i <= 0 for all its constraints i; the
question is whether it contains a point of the domain. For multipliers m >= 0 the weighted sum of
the constraints is at least

    sum m_i b_i - h(-sum m_i a_i)

on the whole domain. If this is positive, some constraint is positive at every point: there is no
such x. Whether alternating projections or an LP solver propose multipliers, this is the check.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive, unit
from fgp_vnn.domain.sets import Domain


class HalfSpaces(NamedTuple):
    """Constraints row . (x - center) + value <= 0 of each polyhedron. A row of zeros constrains
    nothing; with an infinite error it stands for a constraint whose numbers overflowed."""

    rows: Tensor  # [polyhedra, constraints, inputs]
    values: Tensor  # [polyhedra, constraints]
    errors: Tensor  # [polyhedra, constraints] upper bounds on the rounding errors in the domain

    def at(self, polyhedra: Tensor | slice) -> HalfSpaces:
        """Some of the polyhedra."""
        return HalfSpaces(*(part[polyhedra] for part in self))


def without_implied(domain: Domain, spaces: HalfSpaces) -> HalfSpaces:
    """The half-spaces, with zeros for the constraints that hold on the whole domain."""
    most = spaces.values + domain.support(spaces.rows) + spaces.errors
    binds = positive(most)
    zero = torch.zeros_like(spaces.values)
    rows = torch.where(binds.unsqueeze(-1), spaces.rows, zero.unsqueeze(-1))
    values = torch.where(binds, spaces.values, zero)
    unknown = torch.where(most <= 0, zero, zero + torch.inf)
    return HalfSpaces(rows, values, torch.where(binds, spaces.errors, unknown))


def part_within_gap(gap: Tensor, reach: Tensor) -> Tensor:
    """The part t such that in t times the domain a function with this reach cannot close the gap; 0
    where a number overflowed."""
    part = gap / reach.clamp(min=torch.finfo(reach.dtype).tiny)
    return torch.where(positive(gap) & reach.isfinite(), part, torch.zeros_like(part))


def contradiction(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> Tensor:
    """Which polyhedra [polyhedra] the multipliers [polyhedra, constraints] prove to be empty.

    Sound for any multipliers: negative ones count as 0, and non-finite ones prove nothing.
    """
    weights = multipliers.clamp(min=0)
    return positive(nominal(domain, spaces, weights) - sum_error(domain, spaces, weights))


def nominal(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> Tensor:
    """sum m_i b_i - h(-sum m_i a_i) [polyhedra], as computed, with rounding."""
    total = combine(multipliers, spaces.rows)
    return (multipliers * spaces.values).sum(-1) - domain.sharp_support(-total)


def sum_error(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> Tensor:
    """Upper bound [polyhedra] on the rounding error of the constraints' weighted sum.

    A term is rounded in its product, in the sum over the constraints, in the support that is
    subtracted afterwards, and in two sums; a scaled row once more. The underflow of a row's
    coefficient, when it is scaled or multiplied, counts times how far its input moves.
    """
    rows, values, errors = spaces
    size_of, count, box = unit(rows.dtype), rows.shape[1], domain.box()
    steps, moves = count + rows.shape[2] + 16, 1 + (box.upper - box.lower).sum(-1)
    terms = size_of.grow(steps) * errors + size_of.underflow * moves
    terms = terms + size_of.share(steps) * (values.abs() + domain.outer_support(rows))
    # With a multiplier of 0, even an infinite error does not count.
    weighed = torch.where(multipliers == 0, multipliers, multipliers * terms).sum(-1)
    return weighed + size_of.underflow * (6 * count + 8) * moves


def combine(multipliers: Tensor, rows: Tensor) -> Tensor:
    """sum m_i a_i, [polyhedra, inputs]."""
    return torch.bmm(multipliers.unsqueeze(1), rows).squeeze(1)
