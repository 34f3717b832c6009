"""Networks of the unstable neurons only: the same values on the domain, the same answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.network.model import Dense
from fgp_vnn.query import Query, ask, ask_values
from fgp_vnn.search.walk.walk import WalkOptions, walk_regions
from fgp_vnn.transform.stable import collapse
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    confirm_in,
    defect_of,
    exact_preactivations,
    random_domain,
    random_network,
    random_rows,
    rationals,
    sample,
)

SMALL = 0.15  # of the domain: most neurons are stable then


def stable_query(
    seed: int, kind: str = "chain", domain_kind: str = "box", size: float = SMALL
) -> Query:
    network = random_network(seed, kind, inputs=3, widths=(12, 10, 8))
    domain = random_domain(seed, domain_kind, inputs=3, size=size)
    return ask(network, domain, random_rows(seed, 2, 2, 1))


@pytest.mark.parametrize("domain_kind", DOMAINS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5)
@given(seed=st.integers(0, 10_000))
def test_the_collapsed_network_is_the_same_on_the_domain(
    kind: str, domain_kind: str, seed: int
) -> None:
    query = stable_query(seed, kind, domain_kind)
    small, bounds = collapse(
        query, root_bounds(query.network, query.domain, budget=UNLIMITED), budget=UNLIMITED
    )
    x = sample(query.domain, 60, seed)
    difference = (small.network(x) - query.network(x)).abs().max()
    assert float(difference) <= defect_of(small) + 1e-12
    assert defect_of(small) < 1e-9
    seen = small.network.preactivations(x)[:-1]
    for z, lo, up in zip(seen, bounds.lower, bounds.upper, strict=True):
        assert bool((z >= lo - 1e-12).all()) and bool((z <= up + 1e-12).all())


def test_only_unstable_neurons_are_left() -> None:
    query = stable_query(1)
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    unstable = sum(int(mask.sum()) for mask in bounds.unstable())
    small, kept = collapse(query, bounds, budget=UNLIMITED)
    assert unstable < query.network.neurons
    assert small.network.neurons == unstable
    assert all(bool(mask.all()) for mask in kept.unstable())
    assert small.domain is query.domain


def test_many_outputs_do_not_count_where_hidden_layers_are_compared() -> None:
    """With as many inputs as neurons, outputs that read them directly make the whole larger."""
    network = random_network(1, inputs=40, widths=(12, 10, 8))
    domain = random_domain(1, "box", inputs=40, size=0.1)
    rows = torch.eye(network.outputs).double()[:1].expand(400, -1)
    query = ask_values(network, domain, len(network.layers), rows)
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    unstable = sum(int(mask.sum()) for mask in bounds.unstable())
    assert 0 < unstable < network.neurons
    assert collapse(query, bounds, budget=UNLIMITED)[0] is query
    small, _ = collapse(query, bounds, budget=UNLIMITED, hidden=True)
    assert small.network.neurons == unstable
    x = sample(domain, 60, 1)
    assert torch.allclose(small.network(x), query.network(x), atol=1e-9)


def test_a_network_without_unstable_neurons_becomes_one_affine_map() -> None:
    query = stable_query(1, size=1e-6)
    small, kept = collapse(
        query, root_bounds(query.network, query.domain, budget=UNLIMITED), budget=UNLIMITED
    )
    assert small.network.layers == () and kept.lower == ()
    x = sample(query.domain, 30)
    torch.testing.assert_close(small.network(x), query.network(x))


def test_a_network_that_would_not_get_smaller_is_left_as_it_is() -> None:
    query = stable_query(1, size=30.0)
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    again, same = collapse(query, bounds, budget=UNLIMITED)
    assert again is query and same is bounds


def test_the_defect_covers_the_difference_to_the_real_network() -> None:
    """Both networks in rational arithmetic: what composing the maps has rounded, and no more."""
    for seed in range(6):
        query = stable_query(seed)
        small, _ = collapse(
            query, root_bounds(query.network, query.domain, budget=UNLIMITED), budget=UNLIMITED
        )
        assert small is not query
        for point in sample(query.domain, 4, seed)[:4]:
            before = exact_preactivations(query.network, rationals(point))[-1]
            after = exact_preactivations(small.network, rationals(point))[-1]
            for one, other in zip(before, after, strict=True):
                assert abs(float(one - other)) <= defect_of(small)


def test_a_defect_of_the_old_network_is_handed_on() -> None:
    query = stable_query(3)
    layer = query.network.layers[1]
    assert isinstance(layer, Dense)
    worse = Dense(layer.sources, layer.weights, layer.bias, torch.full((10,), 1e-3).double())
    layers = (query.network.layers[0], worse, query.network.layers[2])
    network = type(query.network)(layers, query.network.output, query.network.inputs)
    marred = Query(network, query.domain, query.disjunct, query.strict, query.disjuncts)
    small, _ = collapse(
        marred, root_bounds(network, query.domain, budget=UNLIMITED), budget=UNLIMITED
    )
    shifted = Dense(layer.sources, layer.weights, layer.bias + 1e-3)
    moved = type(network)((layers[0], shifted, layers[2]), network.output, network.inputs)
    x = sample(query.domain, 40)
    assert float((moved(x) - small.network(x)).abs().max()) <= defect_of(small) + 1e-12


def test_linear_bounds_stay_the_same() -> None:
    for seed in range(5):
        query = stable_query(seed)
        bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
        small, kept = collapse(query, bounds, budget=UNLIMITED)
        torch.testing.assert_close(_bound(small, kept), _bound(query, bounds), atol=1e-9, rtol=1e-9)


def _bound(query: Query, bounds: LayerBounds) -> Tensor:
    network = query.network
    rows = torch.eye(network.outputs, dtype=torch.float64).unsqueeze(0)
    rounding = Rounding(network, query.domain, bounds)
    passed = backward(
        network, query.domain, len(network.layers), rows, bounds.lines(), rounding=rounding
    )
    return passed.least


@pytest.mark.parametrize("domain_kind", ["box", "l2", "l1"])
def test_verdicts_are_those_of_the_whole_network(domain_kind: str) -> None:
    seen = set()
    for seed in range(8):
        query = stable_query(seed, KINDS[seed % 3], domain_kind, size=0.3)
        bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
        small, kept = collapse(query, bounds, budget=UNLIMITED)
        confirm = confirm_in(query)
        whole = walk_regions(query, bounds, confirm, UNLIMITED, WalkOptions())
        part = walk_regions(small, kept, confirm, UNLIMITED, WalkOptions())
        assert whole.status == part.status
        seen.add(part.status)
    assert {"sat", "unsat"} <= seen


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10_000), below=st.floats(1e-14, 1e-10), sign=st.sampled_from((1.0, -1.0))
)
def test_a_sign_known_but_for_rounding_is_taken_as_known_at_the_price_of_a_defect(
    seed: int, below: float, sign: float
) -> None:
    query = stable_query(seed)
    first = query.network.layers[0]
    assert isinstance(first, Dense)
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    reach = sign * first.bias.new_full(first.bias.shape, 1.0)
    end = torch.where(reach > 0, bounds.lower[0][0], bounds.upper[0][0])
    # The last neuron is moved so that it crosses 0 by `below` only.
    bias = first.bias.clone()
    bias[-1] -= end[-1] + sign * below
    moved = replace(first, bias=bias)
    network = replace(query.network, layers=(moved, *query.network.layers[1:]))
    query = replace(query, network=network)
    bounds = root_bounds(network, query.domain, budget=UNLIMITED)
    assert bool(bounds.unstable()[0][0, -1])
    assume(below < 1e-10 * float((bounds.upper[0] - bounds.lower[0])[0, -1]))
    small, _ = collapse(query, bounds, budget=UNLIMITED)
    assert small.network.neurons < sum(int(mask.sum()) for mask in bounds.unstable())
    x = torch.cat([sample(query.domain, 60, seed), _corner(query, moved.weights[0][-1], sign)])
    difference = (small.network(x) - network(x)).abs().max()
    assert float(difference) <= defect_of(small)


def _corner(query: Query, row: Tensor, sign: float) -> Tensor:
    """The point of the domain at which the row is least, or greatest."""
    return query.domain.maximiser(-sign * row.reshape(1, 1, -1)).reshape(1, -1)


def test_neurons_that_no_output_sees_are_left_out() -> None:
    query = stable_query(6)
    network = query.network
    bounds = root_bounds(network, query.domain, budget=UNLIMITED)
    last = network.layers[-1]
    open_ = torch.nonzero(bounds.unstable()[-1][0]).flatten()
    assert len(open_) > 1
    blind = torch.zeros(network.outputs, last.outputs, dtype=torch.float64)
    blind[:, open_[0]] = 1  # the only one that is read
    output = Dense((len(network.layers),), (blind,), torch.zeros_like(network.output.bias))
    small, kept = collapse(
        replace(query, network=replace(network, output=output)), bounds, budget=UNLIMITED
    )
    assert kept.lower[-1].shape[-1] == 1
    x = sample(query.domain, 60, 1)
    expected = network.preactivations(x)[-2][:, open_[:1]].clamp(min=0)
    torch.testing.assert_close(small.network(x), expected.expand_as(small.network(x)))
