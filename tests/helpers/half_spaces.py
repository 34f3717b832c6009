"""Random half-spaces whose status in a domain is known because it was planted."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.domain.sets import Domain
from fgp_vnn.regions.halfspaces import HalfSpaces
from tests.helpers.random_networks import generator, normal, random_domain, sample


def met_somewhere(
    seed: int, kind: str, *, inputs: int = 3, constraints: int = 8, margin: float = 0.0
) -> tuple[Domain, HalfSpaces, Tensor]:
    """Constraints that hold, by at least the margin, at a point [inputs] of the domain.

    The first of them hold with equality where the margin is 0, up to the last digit.
    """
    domain = random_domain(seed, kind, inputs=inputs)
    source = generator(seed)
    point = sample(domain, 20, seed)[seed % 20]
    rows = normal(source, constraints, inputs) * _scales(source, constraints)
    slack = margin + torch.rand(constraints, generator=source, dtype=torch.float64) * 0.1
    slack[: constraints // 2] = margin
    reach = domain.outer_support(rows)
    values = -(rows @ (point - domain.center)) - slack * reach
    return domain, _spaces(rows, values, reach), point


def met_nowhere(
    seed: int, kind: str, *, inputs: int = 3, constraints: int = 8, margin: float = 1e-3
) -> tuple[Domain, HalfSpaces, Tensor]:
    """Constraints with multipliers [constraints] whose weighted sum is at least the margin."""
    domain = random_domain(seed, kind, inputs=inputs)
    source = generator(seed)
    rows = normal(source, constraints, inputs) * _scales(source, constraints)
    reach = domain.outer_support(rows)
    multipliers = torch.rand(constraints, generator=source, dtype=torch.float64) / reach
    multipliers[constraints // 2 :] = 0
    least = -domain.sharp_support(-(multipliers @ rows).unsqueeze(0))[0]
    share = torch.where(multipliers > 0, 1 / multipliers, 0.0) / (multipliers > 0).sum()
    values = (margin - least) * share - 0.1 * reach * (multipliers == 0)
    return domain, _spaces(rows, values, reach), multipliers


def _scales(source: torch.Generator, count: int) -> Tensor:
    return 10.0 ** torch.randint(-3, 4, (count, 1), generator=source).double()


def _spaces(rows: Tensor, values: Tensor, reach: Tensor) -> HalfSpaces:
    """With the errors that forms of a few layers have."""
    errors = 1e-14 * (reach + values.abs())
    return HalfSpaces(rows.unsqueeze(0), values.unsqueeze(0), errors.unsqueeze(0))
