"""Searches that bound hidden neurons over what linear bounds leave: the same proofs, sooner."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.query import Query, ask_values
from fgp_vnn.strategy import Ascent, Neurons, Slopes, Strategy
from tests.helpers.small_networks import (
    balls,
    bounds_of,
    random_network,
    random_point,
    sample,
)
from tests.helpers.solving import search_neurons


def safe_query(kind: str, seed: int) -> Query:
    """Outputs that are above 0 by a margin which takes some splits to prove."""
    network = random_network((6, 24, 20, 16, 2), seed)
    domain = balls(random_point(6, seed), 0.35)[kind]
    least = network(sample(domain, 20_000, seed)).amin(0)
    return ask_values(network, domain, 3, torch.eye(2, dtype=torch.float64), 0.04 - least)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["l2", "linf"])
def test_a_search_that_clips_proves_the_same_with_fewer_bundles(kind: str) -> None:
    counts = {0: 0, 8: 0}
    for seed in range(2):
        query = safe_query(kind, seed)
        for clipping in counts:
            neurons = Neurons(clipped=clipping, near=1.0)
            how = Strategy(neurons=neurons, slopes=Slopes(bundles=Ascent(steps=4)))
            found = search_neurons(query, bounds_of(query), lambda points: None, UNLIMITED, how)
            assert found.status == "unsat"
            counts[clipping] += found.statistics["bundles"]
    assert counts[8] < 0.8 * counts[0]


@pytest.mark.slow
def test_bounding_once_more_where_it_promises_much_takes_fewer_bundles() -> None:
    counts = {torch.inf: 0, 0.3: 0}
    for seed in range(8):
        query = safe_query("linf", seed)
        for again in counts:
            neurons = Neurons(near=1.0, again=again)
            slopes = Slopes(bundles=Ascent(steps=4, aim=0.3, looks=True))
            how = Strategy(neurons=neurons, slopes=slopes)
            found = search_neurons(query, bounds_of(query), lambda points: None, UNLIMITED, how)
            assert found.status == "unsat"
            counts[again] += found.statistics["bundles"]
    assert counts[0.3] < counts[torch.inf]
