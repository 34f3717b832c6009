"""Pairs of neurons that are one: the merged network is the same, and its bounds are tighter."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query, ask
from fgp_vnn.transform.opposites import merge_opposites
from tests.helpers.random_networks import random_domain, random_network, random_rows, sample

WIDTHS = (6, 7, 5)


def doubled(seed: int, *, sign: float, rest: float, domain_kind: str = "box") -> tuple[Query, int]:
    """A query whose first layer holds each neuron twice, up to the sign, and how many there are.

    A neuron's weights w are given to its twin as -w + rest * w.
    """
    network = random_network(seed, "dense", inputs=3, widths=WIDTHS)
    first, second = network.layers[:2]
    assert isinstance(first, Dense) and isinstance(second, Dense) and second.sources == (1,)
    twice = Dense(
        first.sources,
        tuple(torch.cat([w, sign * w]) for w in first.weights),
        torch.cat([first.bias, sign * first.bias]),
    )
    weight = second.weights[0]
    reads = replace(second, weights=(torch.cat([weight, (rest - 1) * weight], -1),))
    layers = (twice, reads, *network.layers[2:])
    network = Network(layers, _dense(network.output), network.inputs)
    domain = random_domain(seed, domain_kind, inputs=3, size=0.5)
    return ask(network, domain, random_rows(seed, 2, 2, 1)), first.outputs


def _dense(affine: object) -> Dense:
    assert isinstance(affine, Dense)
    return affine


def merged(query: Query) -> tuple[Query, LayerBounds]:
    found = merge_opposites(query, root_bounds(query.network, query.domain, budget=UNLIMITED), 1e-6)
    assert found is not None
    return found


def slack(network: Network, x: Tensor) -> Tensor:
    """How far the outputs may be off, by the defects and by float64."""
    total: list[Tensor] = [torch.zeros(network.inputs, dtype=torch.float64)]
    for affine in network.maps:
        spread = affine.spread([total[s] for s in affine.sources])
        total.append(spread if affine.defect is None else spread + affine.defect)
    return total[-1] + 1e-13 * (1 + network(x).abs().amax(0))


@pytest.mark.parametrize("rest", [0.0, 1e-9, 0.5])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("domain_kind", ["box", "l2"])
@settings(max_examples=5)
@given(seed=st.integers(0, 10_000))
def test_the_merged_network_is_the_same_on_the_domain(
    sign: float, rest: float, domain_kind: str, seed: int
) -> None:
    query, count = doubled(seed, sign=sign, rest=rest, domain_kind=domain_kind)
    small, bounds = merged(query)
    x = sample(query.domain, 60, seed)
    difference = (small.network(x) - query.network(x)).abs().amax(0)
    assert bool((difference <= slack(small.network, x)).all())
    assert float(slack(small.network, x).max()) < 1e-6
    assert small.network.widths[0] == (count if rest == 0.5 else 1)
    assert small.network.widths[1:] == query.network.widths[1:]
    seen = small.network.preactivations(x)
    for z, lo, up in zip(seen, bounds.lower, bounds.upper, strict=False):
        assert bool((z >= lo - 1e-7).all()) and bool((z <= up + 1e-7).all())


def test_what_rounding_left_over_is_dropped_at_the_price_of_a_defect() -> None:
    query, _ = doubled(3, sign=-1.0, rest=1e-7)
    small, _ = merged(query)
    x = sample(query.domain, 400, 3)
    difference = (small.network(x) - query.network(x)).abs().amax(0)
    assert float(difference.max()) > 1e-11  # so that it is not float64 that makes it
    assert bool((difference <= slack(small.network, x)).all())


def test_defects_of_merged_neurons_are_passed_on() -> None:
    query, count = doubled(5, sign=-1.0, rest=0.5)
    first = query.network.layers[0]
    assert isinstance(first, Dense)
    uncertain = replace(first, defect=torch.full_like(first.bias, 1e-3))
    network = replace(query.network, layers=(uncertain, *query.network.layers[1:]))
    small, _ = merged(replace(query, network=network))
    second = query.network.layers[1]
    assert isinstance(second, Dense)
    size = second.weights[0][:, count:].abs().sum(-1)
    defect = small.network.layers[1].defect
    assert defect is not None
    assert bool((defect >= 3e-3 * size * (1 - 1e-9)).all())


def test_what_rounding_has_lost_in_rows_that_agree_counts_for_both() -> None:
    """Rows that were computed agree digit by digit though the exact ones do not."""
    query, count = doubled(5, sign=-1.0, rest=0.5)
    first, second = query.network.layers[:2]
    assert isinstance(first, Dense) and isinstance(second, Dense)
    ones = *(torch.ones_like(weight) for weight in first.weights), torch.ones_like(first.bias)
    computed = replace(first, terms=ones, rounded=7)
    network = replace(query.network, layers=(computed, *query.network.layers[1:]))
    small, _ = merged(replace(query, network=network))
    found = small.network.layers[1]
    assert isinstance(found, Dense) and found.terms is not None
    # Every entry of a row is off by 7 roundings of 1, for the removed rows and twice for the kept.
    moved = second.weights[0][:, count:].abs().sum(-1, keepdim=True)
    assert found.rounded >= 7 + count
    assert bool((found.terms[found.sources.index(0)] >= 3 * moved * (1 - 1e-9)).all())
    assert bool((found.terms[-1] >= 3 * moved.squeeze(-1) * (1 - 1e-9)).all())


def test_terms_of_moved_weights_are_moved_with_them() -> None:
    """A moved weight may be a small rest of large terms."""
    query, count = doubled(5, sign=-1.0, rest=0.5)
    first, second = query.network.layers[:2]
    assert isinstance(first, Dense) and isinstance(second, Dense)
    large = torch.full_like(second.weights[0], 100.0)
    computed = replace(second, terms=(large, second.bias.abs()), rounded=3)
    network = replace(query.network, layers=(first, computed, *query.network.layers[2:]))
    small, _ = merged(replace(query, network=network))
    found = small.network.layers[1]
    assert isinstance(found, Dense) and found.terms is not None and found.rounded >= 3 + count
    of_input, of_neurons = (found.terms[found.sources.index(s)] for s in (0, 1))
    assert bool((of_neurons >= 200 * (1 - 1e-9)).all())
    sizes = first.weights[0][:count].abs().sum(0)
    assert bool((of_input >= 100 * sizes * (1 - 1e-9)).all())


def test_bounds_become_those_of_the_network_without_twins() -> None:
    query, count = doubled(7, sign=-1.0, rest=0.0)
    before = root_bounds(query.network, query.domain, budget=UNLIMITED)
    small, bounds = merged(query)
    after = root_bounds(small.network, small.domain, prior=bounds, budget=UNLIMITED)
    # What is left after the first layer is linear in x: its box is exact there.
    affine = small.network.layers[1]
    assert isinstance(affine, Dense)
    reach = query.domain.reach(affine.weights[0])
    width = (after.upper[1] - after.lower[1])[0]
    assert torch.allclose(width, 2 * reach, rtol=1e-6)
    assert float((before.upper[1] - before.lower[1]).sum()) > 1.2 * float(width.sum())
    assert count == WIDTHS[0]


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_nothing_is_merged_where_no_rows_agree(seed: int) -> None:
    network = random_network(seed, "chain", inputs=3, widths=WIDTHS)
    first = network.layers[0]
    assert isinstance(first, Dense)
    same_bias = replace(first, bias=torch.ones_like(first.bias))
    network = replace(network, layers=(same_bias, *network.layers[1:]))
    query = ask(network, random_domain(seed, "box", inputs=3), random_rows(seed, 2, 2, 1))
    assert (
        merge_opposites(query, root_bounds(query.network, query.domain, budget=UNLIMITED), 1e-6)
        is None
    )
