"""Several rows bounded as one sum, and how the ascent weighs them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.slopes import Ascended, Rows, ascend, plain_multipliers
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.model import Network
from tests.bounds.test_ascent import SHORT, WIDTHS, kinds, never
from tests.helpers.random_networks import output_rows, random_domain, random_network, sample


def weighed(
    network: Network, domain: Domain, bounds: LayerBounds, weights: Tensor, *, coarse: bool = False
) -> tuple[Tensor, Ascended]:
    """Rows y_1, -y_1, y_2, -y_2 bounded as one sum, the weights to begin with given."""
    rows = output_rows(network)
    begin = plain_multipliers(rows[:, :1], bounds)._replace(weights=weights)
    single = network.to("cpu", torch.float32), domain.to("cpu", torch.float32)
    raised = ascend(
        Rows(network, domain, len(network.layers), rows, bounds),
        begin=begin,
        coarse=single if coarse else None,
        ascent=SHORT,
        done=never,
    )
    return rows[0], raised


@pytest.mark.parametrize("coarse", [False, True])
@kinds
@settings(max_examples=4)
@given(seed=st.integers(0, 10_000))
def test_the_weighed_sum_of_rows_is_bounded_where_its_weights_end(
    kind: str, coarse: bool, seed: int
) -> None:
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, "box", inputs=3)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    weights = torch.rand(1, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    rows, raised = weighed(network, domain, bounds, weights, coarse=coarse)
    found = raised.multipliers.weights
    assert found is not None and found.shape == (1, 4) and found.dtype == torch.float64
    assert bool((found >= 0).all()) and float(found.sum()) > 0
    values = network(sample(domain, 200, seed)) @ rows.T @ found[0]
    assert bool((values >= raised.least[0]).all())


def test_weights_move_to_the_rows_that_prove_most() -> None:
    """The equal sum of y and -y is 0: some other weights have a bound that is higher."""
    raised_some = 0
    for seed in range(6):
        network, domain = random_network(seed, widths=WIDTHS), random_domain(seed, size=0.3)
        bounds = root_bounds(network, domain, budget=UNLIMITED)
        _, raised = weighed(network, domain, bounds, torch.full((1, 4), 0.25).double())
        raised_some += float(raised.least) > 0.01
    assert raised_some > 2
