"""The second opinion on evidence: a backward pass through the region."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from torch import Tensor

from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.regions.forms import affine_forms
from fgp_vnn.regions.refute import Refuter
from fgp_vnn.search.leaves import Leaves
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    generator,
    random_domain,
    random_network,
    random_rows,
    sample,
)
from tests.helpers.small_networks import random_network as deep_network
from tests.search.test_leaves import ONLY_LP, WIDTHS, signs_of


def make_query(seed: int, domain: Domain, network: Network | None = None) -> Query:
    network = network or random_network(seed, KINDS[seed % 3], widths=WIDTHS)
    return ask(network, domain, random_rows(seed, 2, 2))


@pytest.mark.parametrize("kind", DOMAINS)
@given(seed=st.integers(0, 200), scale=st.floats(0, 1e3), noise=st.integers(0, 1 << 30))
def test_a_region_that_is_met_is_never_refuted(
    kind: str, seed: int, scale: float, noise: int
) -> None:
    """The rows are moved so that the domain's centre meets them with equality."""
    query = make_query(seed, random_domain(seed, kind))
    center = query.domain.center.unsqueeze(0)
    limits = query.network(center)[0].numpy()
    both = Conjunction(np.eye(2), limits, np.zeros(2, bool))
    met = ask(query.network, query.domain, [both])
    multipliers = torch.rand(sum(WIDTHS) + 2, generator=generator(noise), dtype=torch.float64)
    multipliers[: sum(WIDTHS)] *= scale
    assert not Refuter(met, UNLIMITED)(signs_of(met, center)[0], multipliers)


@pytest.mark.parametrize("kind", ["box", "l1", "l2"])
def test_what_an_lp_closes_is_refuted_backwards_too(kind: str) -> None:
    seen = 0
    for seed in range(8):
        query = make_query(seed, random_domain(seed, kind))
        regions = signs_of(query, sample(query.domain, 20, seed)[:15])
        refuter, which = Refuter(query, UNLIMITED), torch.zeros(len(regions), dtype=torch.long)
        leaves = Leaves(query, lambda p: None, UNLIMITED, ONLY_LP, refuter)
        settled = leaves.settle(regions, which)
        for region, multipliers in zip(regions, settled.multipliers, strict=True):
            if bool(multipliers.any()):
                assert refuter(region, multipliers)
                assert not refuter(region, -multipliers)
                seen += 1
    assert seen > 2


class Never(Refuter):
    """No second opinion."""

    def __call__(self, signs: Tensor, multipliers: Tensor) -> bool:
        return False


def test_in_a_deep_region_evidence_survives_that_the_forms_errors_drown() -> None:
    """Asked for less than the least value in the region, by less than the forms can tell."""
    depth = 24
    network = deep_network((3, *(12,) * depth, 2), 1)
    center = torch.full((3,), 0.5, dtype=torch.float64)
    domain = Box(center - 0.05, center + 0.05)
    row, none = np.array([[1.0, -1.0]]), np.zeros(1, bool)
    query = ask(network, domain, [Conjunction(row, np.zeros(1), none)])
    signs = signs_of(query, center.unsqueeze(0))
    pattern = torch.split(signs > 0, list(network.widths), -1)
    *hidden, output = affine_forms(query.network, domain, pattern)
    sides = -signs[0].numpy()[:, None]
    columns = torch.cat([form.columns[0].T for form in hidden]).numpy() * sides
    values = torch.cat([form.values[0] for form in hidden]).numpy() * sides[:, 0]
    reach = np.abs(columns).sum(-1) + 1e-30
    least = linprog(
        output.columns[0, :, 0].numpy(),
        A_ub=columns / reach[:, None],
        b_ub=-values / reach,
        bounds=[(-0.05, 0.05)] * 3,
    ).fun + float(output.values)
    error = float(output.error)
    below = Conjunction(row, np.array([least - 0.01 * error]), none)
    query = ask(network, domain, [below])
    which = torch.zeros(1, dtype=torch.long)
    for refuter, closed in ((Never(query, UNLIMITED), False), (Refuter(query, UNLIMITED), True)):
        leaves = Leaves(query, lambda p: None, UNLIMITED, ONLY_LP, refuter)
        settled = leaves.settle(signs, which)
        assert bool(settled.closed) == closed
    assert error > 1e-8
