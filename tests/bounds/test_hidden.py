"""Hidden bounds with slopes of their own: tighter, in any precision and in parts."""

from __future__ import annotations

from dataclasses import replace

import torch

from fgp_vnn.bounds.hidden import refine_layers
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.query import Query
from fgp_vnn.strategy import Slopes
from tests.helpers.random_networks import KINDS
from tests.search.test_hidden_neurons import SHORT, check_samples, make_query


def refine(query: Query, bounds: LayerBounds, slopes: Slopes = SHORT) -> LayerBounds:
    return refine_layers(query, bounds, slopes, UNLIMITED)


def test_slopes_of_their_own_make_bounds_tighter() -> None:
    gained = 0.0
    for seed in range(4):
        query = make_query(seed)
        before = root_bounds(query.network, query.domain, budget=UNLIMITED)
        gained += float((refine(query, before, Slopes()).lower[2] - before.lower[2]).sum())
    assert gained > 0.1


def test_single_precision_queries_are_refined_soundly_too() -> None:
    for seed in range(4):
        query = make_query(seed, KINDS[seed % 3])
        single = query.to("cpu", torch.float32)
        before = root_bounds(single.network, single.domain, budget=UNLIMITED)
        after = refine(single, before)
        check_samples(query, before.to(torch.float64), after.to(torch.float64), seed)


def test_neurons_in_chunks_are_bounded_as_all_at_once() -> None:
    query = make_query(1)
    before = root_bounds(query.network, query.domain, budget=UNLIMITED)
    whole = refine(query, before)
    one_by_one = refine(query, before, replace(SHORT, entries=1))
    for side in ("lower", "upper"):
        parts = zip(getattr(whole, side), getattr(one_by_one, side), strict=True)
        for a, b in parts:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
