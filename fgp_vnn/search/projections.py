"""Regions that one projection leaves inconclusive, settled by alternating projections.

Wanted: a point of the domain in the half-spaces a_i . (x - c) + b_i <= 0 (the region's neurons and
a disjunct's rows). For multipliers m >= 0 let x(m) be the projection onto the domain of
c - sum m_i a_i: an ascent of the concave dual of "the point nearest to c", whose gradient at m is
the value of the constraints at x(m). Points x(m) are candidates. And whatever the iteration, if

    sum m_i b_i - h(-sum m_i a_i) > 0

then the weighted sum of the constraints is positive on the whole domain: the intersection is empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fgp_vnn.domain import Domain
from fgp_vnn.query import Query
from fgp_vnn.regions import Forms
from fgp_vnn.search.outcome import Confirm
from fgp_vnn.verdict import Counterexample

STEPS = 2000
LOOK = 20  # steps between two looks at what has been reached


def settle(
    query: Query,
    pattern: Sequence[Tensor],
    hidden: Sequence[Forms],
    output: Forms,
    region: int,
    disjunct: int,
    confirm: Confirm,
) -> tuple[Counterexample | None, bool]:
    """A counterexample in one region, or whether the disjunct is proved not to be met in it."""
    rows, values, errors = _constraints(query, pattern, hidden, output, region, disjunct)
    domain = query.domain
    center = domain.center
    size = rows.norm(dim=1).clamp(min=torch.finfo(rows.dtype).tiny)
    rows, values, errors = rows / size.unsqueeze(1), values / size, errors / size
    step = 1 / torch.linalg.matrix_norm(rows @ rows.T, ord=2).clamp(min=1e-30)
    multipliers = torch.zeros_like(values)
    ahead, momentum = multipliers, 1.0
    for count in range(1, STEPS + 1):
        point = domain.project((center - ahead @ rows).unsqueeze(0)).squeeze(0)
        slack = rows @ (point - center) + values
        new = (ahead + step * slack).clamp(min=0)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = (new + (momentum - 1) / following * (new - multipliers)).clamp(min=0)
        multipliers, momentum = new, following
        if count % LOOK == 0:
            if _contradiction(domain, rows, values, errors, multipliers):
                return None, True
            if bool((slack <= 1e-7).all()) or count % (10 * LOOK) == 0:
                found = confirm(point.unsqueeze(0))
                if found is not None:
                    return found, False
    return None, False


def _constraints(
    query: Query,
    pattern: Sequence[Tensor],
    hidden: Sequence[Forms],
    output: Forms,
    region: int,
    disjunct: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The half-spaces [constraints, inputs], [constraints] that can bind, and their rounding."""
    rows, values, errors = [], [], []
    for forms, on in zip(hidden, pattern, strict=True):
        at = region if forms.values.shape[0] > 1 else 0
        sign = 1 - 2 * on[region].to(forms.values.dtype)
        # A constraint that holds on the whole domain cannot bind.
        binds = sign * forms.values[at] + forms.reach[at] + forms.error[at] > 0
        rows.append((forms.columns[at] * sign).T[binds])
        values.append((forms.values[at] * sign)[binds])
        errors.append(forms.error[at][binds])
    chosen = query.disjunct == disjunct
    rows.append(output.columns[region].T[chosen])
    values.append(output.values[region][chosen])
    errors.append(output.error[region][chosen])
    return torch.cat(rows), torch.cat(values), torch.cat(errors)


def _contradiction(
    domain: Domain, rows: Tensor, values: Tensor, errors: Tensor, multipliers: Tensor
) -> bool:
    """Whether the weighted sum of the constraints is positive on the domain, rounding included."""
    total = multipliers @ rows
    least = multipliers @ values - domain.support(-total.unsqueeze(0)).squeeze(0)
    reach = domain.reach(rows)
    unit = torch.finfo(rows.dtype).eps * 2 * (len(values) + rows.shape[1] + 10)
    rounding = multipliers @ (errors + unit * (values.abs() + reach))
    return bool(least - 1.01 * rounding > 0)
