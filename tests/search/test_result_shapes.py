"""What the kernels of the searches return has the shapes that they say, at odd sizes too."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query, ask
from fgp_vnn.search.bundles import bound, children, context_and_root
from fgp_vnn.search.choice import choose
from fgp_vnn.search.clipping import clip_boxes
from fgp_vnn.search.conjunctions import weigh_rows
from fgp_vnn.strategy import Ascent, Inputs, Neurons
from tests.helpers.random_networks import KINDS, normal, random_domain, random_network, random_rows

WIDTHS = (4, 1)
NEURONS = sum(WIDTHS)
kinds = pytest.mark.parametrize("kind", KINDS)
some_inputs = pytest.mark.parametrize("inputs", [1, 3])
counts = pytest.mark.parametrize("counts", [(1,), (1, 3)], ids=str)


def made(kind: str, inputs: int, counts: tuple[int, ...]) -> Query:
    network = random_network(1, kind, inputs=inputs, widths=WIDTHS)
    return ask(network, random_domain(1, inputs=inputs), random_rows(1, 2, *counts))


@kinds
@counts
@some_inputs
@pytest.mark.parametrize("bundles", [0, 1, 3])
def test_of_bundles(kind: str, inputs: int, counts: tuple[int, ...], bundles: int) -> None:
    query = made(kind, inputs, counts)
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    context, root = context_and_root(
        query, bounds, UNLIMITED, Ascent(steps=1), Neurons(candidates=2)
    )
    assert root.signs.shape == root.alpha.shape == root.beta.shape == (len(counts), NEURONS)
    assert root.weights.shape == (len(counts), max(counts))
    some = root.at(torch.zeros(bundles, dtype=torch.int64))
    bounded = bound(context, some)
    assert bounded.crossing.shape == (bundles, NEURONS)
    assert bounded.result.least.shape == (bundles, 1)
    assert bounded.result.points.shape == (bundles, 1, inputs)
    assert bounded.bundles.alpha.shape == bounded.bundles.beta.shape == (bundles, NEURONS)
    at = torch.arange(bundles)
    neuron = choose(context, bounded, at)
    assert neuron.shape == (bundles,)
    assert bounded.regions(at).shape == (bundles, NEURONS)
    both = children(some, neuron)
    assert [len(part) for part in both.parts()] == [2 * bundles] * 6


@kinds
@counts
@some_inputs
@pytest.mark.parametrize("boxes", [0, 1, 3])
def test_of_boxes(kind: str, inputs: int, counts: tuple[int, ...], boxes: int) -> None:
    query = made(kind, inputs, counts)
    center = normal(torch.Generator().manual_seed(0), boxes, inputs)
    box = Box(center - 0.5, center + 0.5)
    bounds = root_bounds(query.network, box, budget=UNLIMITED)
    rows = torch.eye(sum(counts)).double().expand(boxes, -1, -1)
    rounding = Rounding(query.network, box, bounds)
    passed = backward(query.network, box, 2, rows, bounds.lines(), rounding=rounding)
    combined = weigh_rows(query, box, passed, Inputs())
    assert combined.closed.shape == (boxes, len(counts))
    assert combined.weights.shape == (boxes, sum(counts))
    several = sum(count > 1 for count in counts)
    assert (combined.points is None) == (not several)
    assert combined.points is None or combined.points.shape == (boxes, several, inputs)
    left, closed = clip_boxes(query, box, passed, combined.closed)
    assert left.lower.shape == left.upper.shape == (boxes, inputs)
    assert closed.shape == (boxes, len(counts))
