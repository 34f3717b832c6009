"""Half-spaces in a domain, and the evidence that no point of the domain lies in all of them.

A case asks for a point x of the domain with a_i . (x - c) + b_i <= 0 for all its constraints i. For
multipliers m >= 0 the weighted sum of the constraints is at least

    sum m_i b_i - h(-sum m_i a_i)

on the whole domain. Where that is positive, some constraint is, at every point: there is no such x.
Whoever proposes multipliers, alternating projections or an LP solver, this is what is checked.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.domain import Domain
from fgp_vnn.rounding import positive, unit


class HalfSpaces(NamedTuple):
    """Constraints row . (x - center) + value <= 0 of each case; a row of zeros is none."""

    rows: Tensor  # [cases, constraints, inputs]
    values: Tensor  # [cases, constraints]
    errors: Tensor  # [cases, constraints] how far rounding may have moved each in the domain

    def at(self, cases: Tensor | slice) -> HalfSpaces:
        """Some of the cases."""
        return HalfSpaces(*(part[cases] for part in self))


def binding(domain: Domain, spaces: HalfSpaces) -> HalfSpaces:
    """The same without the constraints that hold on the whole domain."""
    most = spaces.values + domain.support(spaces.rows) + spaces.errors
    binds = (most > 0).to(spaces.values.dtype)
    rows = spaces.rows * binds.unsqueeze(-1)
    return HalfSpaces(rows, spaces.values * binds, spaces.errors * binds)


def contradiction(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> Tensor:
    """Which cases [cases] the multipliers [cases, constraints] prove to be empty.

    Sound for any numbers: negative ones count as 0, and what is not finite proves nothing.
    """
    total, gap = weigh(domain, spaces, multipliers.clamp(min=0))
    return positive(gap - domain.sharp_support(-total))


def weigh(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> tuple[Tensor, Tensor]:
    """sum m_i a_i, and sum m_i b_i less what rounding may have added to it on the domain.

    A term is rounded in its product, in the sum over the constraints, in the support that is taken
    off afterwards, and in two sums; rows that were scaled once more. What a row's coefficient loses
    to underflow, when it is scaled or multiplied, counts times how far its input moves.
    """
    rows, values, errors = spaces
    size_of, count, box = unit(rows.dtype), rows.shape[1], domain.box()
    steps, moves = count + rows.shape[2] + 16, 1 + (box.upper - box.lower).sum(-1)
    terms = size_of.grow(steps) * errors + size_of.lost * moves
    terms = terms + size_of.share(steps) * (values.abs() + domain.outer_support(rows))
    small = size_of.lost * (6 * count + 8) * moves
    gap = (multipliers * values).sum(-1) - (multipliers * terms).sum(-1) - small
    return combine(multipliers, rows), gap


def combine(multipliers: Tensor, rows: Tensor) -> Tensor:
    """sum m_i a_i, [cases, inputs]."""
    return torch.bmm(multipliers.unsqueeze(1), rows).squeeze(1)
