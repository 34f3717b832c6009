"""Hidden bounds with slopes of their own: they hold, and never get looser."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fgp_vnn.bounds.backward import LayerBounds, root_bounds
from fgp_vnn.bounds.hidden import refine_layers
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.query import Query
from fgp_vnn.strategy import Ascent, Slopes
from tests.helpers.random_networks import DOMAINS, KINDS
from tests.search.test_hidden_neurons import (
    check_exact_range,
    check_overflow,
    check_samples,
    make_query,
)

kinds = pytest.mark.parametrize("kind", KINDS)

SHORT = Slopes(rows=Ascent(steps=8))


def refine(query: Query, bounds: LayerBounds, slopes: Slopes = SHORT) -> LayerBounds:
    return refine_layers(query, bounds, slopes, UNLIMITED)


@pytest.mark.parametrize("domain_kind", DOMAINS)
@kinds
@settings(max_examples=3)
@given(seed=st.integers(0, 10_000))
def test_refined_bounds_hold_at_every_point_and_never_get_looser(
    kind: str, domain_kind: str, seed: int
) -> None:
    query = make_query(seed, kind, domain_kind)
    before = root_bounds(query.network, query.domain, budget=UNLIMITED)
    check_samples(query, before, refine(query, before), seed)


@kinds
def test_refined_bounds_contain_the_exact_range(kind: str) -> None:
    for seed in range(2):
        query = make_query(seed, kind)
        check_exact_range(
            query, refine(query, root_bounds(query.network, query.domain, budget=UNLIMITED))
        )


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


def test_without_time_the_bounds_are_those_that_were_given() -> None:
    query = make_query(2)
    before = root_bounds(query.network, query.domain, budget=UNLIMITED)
    after = refine_layers(query, before, Slopes(rows=Ascent(steps=5)), Budget.of(0.0, None))
    for a, b in zip(before.lower, after.lower, strict=True):
        assert torch.equal(a, b)


def test_what_overflows_makes_no_neuron_stable() -> None:
    check_overflow(refine)
