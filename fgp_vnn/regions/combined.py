"""One inequality that combines all constraints of a region.

Every point of a region has s_u z_u >= 0. So for multipliers m >= 0 it satisfies

    p . (x - center) >= q,   p = sum m_u s_u A_u,   q = -sum m_u s_u v_u,

and a region with q > h(p) holds no point of the domain. One sweep of Hildreth's method, which
corrects a point for one constraint after the other, finds good multipliers, and the best ones if
the constraints are orthogonal. The combined inequality also cuts the hyperplane of each row:

    (p + k A_u) . (x - center) >= q - k v_u   where z_u = 0, for any k,

so the hyperplane does not meet the region if q - k v_u > h(p + k A_u).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive, unit
from fgp_vnn.domain.sets import Box, Domain, L2Ball
from fgp_vnn.regions.triangular import RegionForms, Triangular


class Combined(NamedTuple):
    """The inequality p . (x - center) >= q - slack of each region.

    The errors of the rows include the rounding of a sum over all rows, of its support, and of the
    sum of these errors; the slack is NaN where q is not finite.
    """

    p: Tensor  # [regions, inputs]
    q: Tensor  # [regions]
    slack: Tensor  # [regions] upper bound on the rounding error of q


def combine_constraints(system: Triangular, forms: RegionForms, sign: Tensor) -> Combined:
    """One inequality for each region, from one sweep over its neurons; sign [neurons, regions]."""
    count = system.neurons
    rows, values = forms.rows[:count], -sign * forms.values[:count]
    metric = _metric(system.domain)
    squares = _squares(system.domain, forms, metric)[:count]
    factor = sign / squares.clamp(min=torch.finfo(rows.dtype).tiny)
    multipliers = torch.empty_like(values)
    p = rows.new_zeros(rows.shape[1:])
    moved = p  # the present point of the sweep, in the metric
    for u in range(count):
        row = rows[u]
        lacking = torch.addcmul(values[u], sign[u], (row * moved).sum(-1), value=-1)
        step = lacking.clamp_(min=0).mul_(factor[u])
        multipliers[u] = step
        p.addcmul_(row, step.unsqueeze(-1))
        if metric is not None:
            moved = p * metric
    multipliers *= sign
    slack = (multipliers * system.error[:count].unsqueeze(1)).sum(0) + system.floor
    q = (multipliers * values).sum(0)
    return Combined(p, q, slack + (q - q))


def misses(domain: Domain, combined: Combined) -> Tensor:
    """Which regions [regions] hold no point of the domain."""
    return positive(combined.q - combined.slack - domain.support(combined.p))


def excluded(system: Triangular, forms: RegionForms, combined: Combined) -> Tensor:
    """Which rows [rows, regions] are nowhere 0 (output rows: nowhere <= 0) in the region's part of
    the domain."""
    p, q, slack = combined
    dot = (forms.rows * p).sum(-1)  # [rows, regions]
    own = p.square().sum(-1)
    squares = _squares(system.domain, forms, None)
    below = q * squares + forms.values * dot
    factor = -(forms.values * own + q * dot) / below
    factor = torch.where(below > 0, factor, torch.zeros_like(factor))
    factor[system.neurons :].clamp_(max=0)  # g <= 0 is a half-space
    if isinstance(system.domain, L2Ball):
        reach = system.domain.radius * _norm_of_sum(own, dot, squares, factor, p.shape[1])
    else:
        reach = system.domain.support(torch.addcmul(p, factor.unsqueeze(-1), forms.rows))
    rounding = slack + factor.abs() * system.error.unsqueeze(1)
    return positive(q - factor * forms.values - rounding - reach)


def _metric(domain: Domain) -> Tensor | None:
    """The squared half-sides of a box [inputs]; None for other domains."""
    return domain.radius.square() if isinstance(domain, Box) else None


def _squares(domain: Domain, forms: RegionForms, metric: Tensor | None) -> Tensor:
    """The squared lengths of all rows [rows, regions]; in an l2 ball they follow from the reach."""
    if isinstance(domain, L2Ball) and domain.radius > 0:
        return (forms.reach / domain.radius).square_()
    squares = forms.rows.square()
    return (squares if metric is None else squares * metric).sum(-1)


def _norm_of_sum(own: Tensor, dot: Tensor, squares: Tensor, factor: Tensor, inputs: int) -> Tensor:
    """Upper bound on the norm of p + factor A, from the inner products of p and A.

    |p|^2 has inputs + 1 roundings, factor^2 |A|^2 has two and twice the inputs + 11 of a support,
    and twice their inner product, at most the sum of the two, has inputs + 3; five more follow.
    Underflow costs each sum two operations per input, times at most 1 + factor^2.
    """
    size_of, square = unit(own.dtype), factor.square()
    scaled = square * squares
    share, lost = size_of.share(4 * inputs + 40), 8 * (inputs + 2) * size_of.underflow
    total = own + scaled + 2 * factor * dot
    return (total + share * (own + scaled) + lost * (1 + square)).clamp_(min=0).sqrt_()
