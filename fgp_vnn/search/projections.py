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
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.deadline import Deadline
from fgp_vnn.domain import Box, Domain, L1Ball, L2Ball
from fgp_vnn.query import Query
from fgp_vnn.regions import Forms
from fgp_vnn.search.outcome import Confirm
from fgp_vnn.verdict import Counterexample

STEPS = 2000
LOOK = 20  # steps between two looks at what has been reached


class HalfSpaces(NamedTuple):
    """Constraints row . (x - center) + value <= 0 of each case; a row of zeros is none."""

    rows: Tensor  # [cases, constraints, inputs]
    values: Tensor  # [cases, constraints]
    errors: Tensor  # [cases, constraints] how far rounding may have moved each in the domain


def alternate(
    domain: Domain, spaces: HalfSpaces, confirm: Confirm, deadline: Deadline, *, steps: int = STEPS
) -> tuple[Counterexample | None, Tensor]:
    """A counterexample, or which cases [cases] are proved to hold no point of the domain."""
    cases = spaces.values.shape[0]
    empty = torch.zeros(cases, dtype=torch.bool, device=spaces.values.device)
    left = torch.arange(cases, device=empty.device)
    now = _scaled(spaces)
    step = _step_length(now.rows)
    multipliers = torch.zeros_like(now.values)
    ahead, momentum = multipliers, 1.0
    for count in range(1, steps + 1):
        point = domain.project(domain.center - _weigh(ahead, now.rows))
        slack = _along(now.rows, point - domain.center) + now.values
        new = torch.addcmul(ahead, step, slack).clamp_(min=0)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = torch.lerp(multipliers, new, 1 + (momentum - 1) / following).clamp_(min=0)
        multipliers, momentum = new, following
        if count % LOOK and count != steps:
            continue
        inside = slack.amax(-1) <= 1e-7
        if bool(inside.any()) or count % (10 * LOOK) == 0 or count == steps:
            found = confirm(point)
            if found is not None:
                return found, empty
        proved = _contradiction(domain, now, multipliers)
        empty[left[proved]] = True
        if deadline.expired() or bool(proved.all()):
            break
        if bool(proved.any()):
            kept = torch.nonzero(~proved).flatten()
            now = HalfSpaces(*(part[kept] for part in now))
            left, step = left[kept], step[kept]
            multipliers, ahead = multipliers[kept], ahead[kept]
    return None, empty


def nearest(domain: Domain, spaces: HalfSpaces, *, steps: int = 400) -> tuple[Tensor, Tensor]:
    """Lower bounds [cases], as parts of the domain, of the distance of the intersections from the
    centre, and the points [cases, inputs] that the ascent came to.

    The weighted sum of the constraints is positive in t times the domain while
    sum m_i b_i > t h(-sum m_i a_i).
    """
    now = _scaled(spaces)
    step = _step_length(now.rows)
    multipliers = torch.zeros_like(now.values)
    best = multipliers.new_zeros(len(multipliers))
    ahead, momentum = multipliers, 1.0
    for count in range(1, steps + 1):
        slack = now.values - _along(now.rows, _weigh(ahead, now.rows))
        new = torch.addcmul(ahead, step, slack).clamp_(min=0)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = torch.lerp(multipliers, new, 1 + (momentum - 1) / following).clamp_(min=0)
        multipliers, momentum = new, following
        if count % LOOK == 0:
            best = torch.maximum(best, _part(domain, now, multipliers))
    if isinstance(domain, L2Ball):
        multipliers = _active(now, multipliers)
        best = torch.maximum(best, _part(domain, now, multipliers))
    return best, domain.center - _weigh(multipliers, now.rows)


def nearest_in_norm(
    domain: Domain, spaces: HalfSpaces, *, steps: int = 400
) -> tuple[Tensor, Tensor]:
    """The same as `nearest` for any norm, by primal and dual steps (Chambolle and Pock, 2011).

    With u = x - c they look for the saddle of |u| + m . (rows u + values) over u and m >= 0. The
    step of u is u - P(u), with P the projection onto the ball of the dual norm. Restarts from the
    mean of the steps make it fast on polyhedra.
    """
    now = _scaled(spaces)
    length = (_step_length(now.rows) * 0.9).sqrt()
    unit = _dual_ball(domain, now.rows)
    multipliers, point = torch.zeros_like(now.values), torch.zeros_like(now.rows[:, 0])
    sums, count = (multipliers, point), 0
    best, points = multipliers.new_zeros(len(multipliers)), point
    for step in range(1, steps + 1):
        moved = (point - length * _weigh(multipliers, now.rows)) / length
        new = length * (moved - unit.project(moved))
        slack = _along(now.rows, 2 * new - point) + now.values
        multipliers, point = torch.addcmul(multipliers, length, slack).clamp_(min=0), new
        sums, count = (sums[0] + multipliers, sums[1] + point), count + 1
        if step % LOOK and step != steps:
            continue
        mean = sums[0] / count, sums[1] / count
        last, average = (_part(domain, now, m) for m in (multipliers, mean[0]))
        points = torch.where((average > last).unsqueeze(-1), mean[1], point)
        best = torch.maximum(best, torch.maximum(last, average))
        if step % (4 * LOOK) == 0:
            multipliers, point = mean
            sums, count = (torch.zeros_like(multipliers), torch.zeros_like(point)), 0
    return best, domain.center + points


def _part(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> Tensor:
    """The part of the domain [cases] that multipliers prove to miss the intersections."""
    total, gap = _gap(domain, spaces, multipliers)
    reach = domain.support(-total).clamp(min=torch.finfo(gap.dtype).tiny)
    # Multipliers that overflowed prove nothing.
    return (gap.clamp(min=0) / reach).nan_to_num(0.0, 0.0, 0.0)


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


def _active(spaces: HalfSpaces, multipliers: Tensor) -> Tensor:
    """The multipliers at which the constraints that hold the point hold it exactly.

    At the nearest point those with a multiplier are met with equality, rows rows^T m = values:
    a linear system once it is known which they are. Those that come out negative are let go.
    """
    count = min(spaces.rows.shape[1], spaces.rows.shape[2] + 1)
    top = multipliers.topk(count, dim=-1)
    index = top.indices.unsqueeze(-1).expand(-1, -1, spaces.rows.shape[2])
    rows, values = spaces.rows.gather(1, index), spaces.values.gather(1, top.indices)
    gram = rows @ rows.transpose(-1, -2)
    eye = torch.eye(count, dtype=gram.dtype, device=gram.device)
    best, holds = top.values, top.values > 1e-7 * top.values.amax(-1, keepdim=True)
    for _ in range(count):
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
    rows, values, errors = [], [], []
    for forms, on in zip(hidden, pattern, strict=True):
        at = region if forms.values.shape[0] > 1 else 0
        sign = 1 - 2 * on[region].to(forms.values.dtype)
        rows.append((forms.columns[at] * sign).T)
        values.append(forms.values[at] * sign)
        errors.append(forms.error[at])
    chosen = query.disjunct == disjunct
    rows.append(output.columns[region].T[chosen])
    values.append(output.values[region][chosen])
    errors.append(output.error[region][chosen])
    parts = (torch.cat(part).unsqueeze(0) for part in (rows, values, errors))
    spaces = binding(query.domain, HalfSpaces(*parts))
    found, empty = alternate(query.domain, spaces, confirm, Deadline())
    return found, bool(empty)


def binding(domain: Domain, spaces: HalfSpaces) -> HalfSpaces:
    """The same without the constraints that hold on the whole domain."""
    most = spaces.values + domain.support(spaces.rows) + spaces.errors
    binds = (most > 0).to(spaces.values.dtype)
    rows = spaces.rows * binds.unsqueeze(-1)
    return HalfSpaces(rows, spaces.values * binds, spaces.errors * binds)


def _scaled(spaces: HalfSpaces) -> HalfSpaces:
    """With rows of length 1."""
    size: Tensor = torch.linalg.vector_norm(spaces.rows, dim=-1)
    size = torch.where(size > 0, size, torch.ones_like(size))
    rows = spaces.rows / size.unsqueeze(-1)
    return HalfSpaces(rows, spaces.values / size, spaces.errors / size)


def _step_length(rows: Tensor) -> Tensor:
    """One over the greatest eigenvalue of rows rows^T, estimated by powers; [cases, 1].

    A step that is too long costs convergence and nothing else. Rows have length 1 or 0, so the
    eigenvalue is at least 1 unless there are none.
    """
    # Any start does that no eigenvector is orthogonal to; two opposite rows are to that of ones.
    places = torch.arange(rows.shape[1], dtype=rows.dtype, device=rows.device)
    vector = (1.5 + torch.sin(7 * places)).expand(rows.shape[:2])
    growth = vector.new_ones(len(vector), 1)
    for _ in range(8):
        vector = _along(rows, _weigh(vector, rows))
        growth = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
        vector = vector / growth.clamp(min=torch.finfo(rows.dtype).tiny)
    return 1 / (1.1 * growth.clamp(min=1))


def _weigh(multipliers: Tensor, rows: Tensor) -> Tensor:
    """sum m_i a_i, [cases, inputs]."""
    return torch.bmm(multipliers.unsqueeze(1), rows).squeeze(1)


def _along(rows: Tensor, points: Tensor) -> Tensor:
    """a_i . point, [cases, constraints]."""
    return torch.bmm(rows, points.unsqueeze(-1)).squeeze(-1)


def _contradiction(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> Tensor:
    """Where the weighted sum of the constraints is positive on the domain, rounding included."""
    total, gap = _gap(domain, spaces, multipliers)
    return gap - domain.support(-total) > 0


def _gap(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> tuple[Tensor, Tensor]:
    """sum m_i a_i, and sum m_i b_i less what rounding may have added to it on the domain."""
    rows, values, errors = spaces
    unit = torch.finfo(rows.dtype).eps * 2 * (rows.shape[1] + rows.shape[2] + 10)
    terms = errors + unit * (values.abs() + domain.outer_support(rows))
    gap = (multipliers * values).sum(-1) - 1.01 * (multipliers * terms).sum(-1)
    return _weigh(multipliers, rows), gap
