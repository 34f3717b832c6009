"""Splits of neurons, and tighter bounds of few of them, in networks that have smooth layers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from mpmath import mp
from torch import nn

import fgp_vnn
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.activations.powers import SQUARE
from fgp_vnn.network.activations.sigmoids import SIGMOID, TANH
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.strategy import Hidden, Inputs, Neurons, Slopes, Strategy
from tests.helpers.random_networks import generator, normal
from tests.helpers.smooth_networks import smooth_case
from tests.helpers.solving import search_neurons, solve
from tests.helpers.ticking import Ticking

NEURONS = Strategy(inputs=Inputs(few=-1, some=-1))  # these are split before inputs are
LARGE = Strategy(
    slopes=Slopes(intervals_first=0), hidden=Hidden(worthwhile=1, worth_gain=-1.0)
)  # as if each network were large
OFF = Settings(attack=False)


@pytest.mark.parametrize("strategy", [NEURONS, LARGE], ids=["neurons", "large"])
def test_no_verdict_contradicts_a_sample(strategy: Strategy) -> None:
    for number in (0, 1, 10, 11):
        case = smooth_case(number)
        verdict = solve(case.query, lambda points: None, OFF, Ticking(100), strategy)
        if case.seen < -1e-9:
            assert verdict.status != "unsat", (number, case.names)
            assert sum(verdict.statistics.get(part, 0) for part in ("bundles", "boxes")), number


def mixed(seed: int, margin: float) -> Query:
    """Four ReLUs behind a sigmoid layer, and the question whether their sum falls so far below its
    least sampled value."""
    random = generator(seed)
    first = Dense((0,), (0.5 * normal(random, 3, 2),), normal(random, 3))
    second = Dense((1,), (3 * normal(random, 4, 3),), normal(random, 4))
    network = Network(
        (first, second), Dense((2,), (normal(random, 1, 4),), torch.zeros(1).double()), 2
    )
    network = Network(network.layers, network.output, 2, (SIGMOID, RELU))
    box = Box(-torch.ones(2).double(), torch.ones(2).double())
    inside = 2 * torch.rand(4000, 2, generator=random).double() - 1
    y = network(torch.cat([inside, inside.sign()]))  # corners too
    last = Dense((2,), network.output.adjoint(torch.eye(1).double()), margin - y.min(0).values)
    asked = Network(network.layers, last, 2, network.activations)
    zero = torch.zeros(1)
    return Query(asked, box, zero.long(), zero.bool(), 1)


def search(query: Query, most: int | None = None) -> tuple[str, int, str]:
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    strategy = Strategy(neurons=Neurons(most=most))
    outcome = search_neurons(query, bounds, lambda points: None, UNLIMITED, strategy)
    return outcome.status, outcome.statistics["bundles"], outcome.reason


def test_splits_prove_what_bounds_leave_open() -> None:
    found = [search(mixed(seed, 0.01), 2000) for seed in range(5)]
    assert all(status == "unsat" for status, _, _ in found)
    assert sum(bundles > 1 for _, bundles, _ in found) >= 2


def test_what_a_sample_meets_stays_open() -> None:
    """Of a bundle in which no ReLU is left, nothing says that it is a region."""
    status, bundles, reason = search(mixed(0, -1e-3), 20)
    assert status == "unknown" and "left open" in reason and bundles >= 20


def test_what_cannot_be_split_any_more_stays_open() -> None:
    """Over a single point tanh(x) - tanh(1) is 0 up to rounding, which is met."""
    one = torch.ones(1).double()
    first = Dense((0,), (one.unsqueeze(0),), torch.zeros(1).double())
    last = replace(first, sources=(1,), bias=-torch.tanh(one))
    query = Query(
        Network((first,), last, 1, (TANH,)), Box(one, one), one.long() - 1, one.bool() & False, 1
    )
    status, bundles, reason = search(query)
    assert (status, bundles) == ("unknown", 1) and "Tanh" in reason


def bent(level: float) -> Query:
    """Whether 0.1 tanh(9 x) + 0.4 x^2 falls to a level over [-1, 1]."""
    first = Dense((0,), (9 * torch.ones(1, 1).double(),), torch.zeros(1).double())
    second = replace(first, weights=(torch.ones(1, 1).double(),))
    weights = tuple(torch.full((1, 1), part).double() for part in (0.1, 0.4))
    last = Dense((1, 2), weights, torch.tensor([-level]).double())
    zero = torch.zeros(1)
    box = Box(-torch.ones(1).double(), torch.ones(1).double())
    network = Network((first, second), last, 1, (TANH, SQUARE))
    return Query(network, box, zero.long(), zero.bool(), 1)


def test_smooth_neurons_alone_are_split_up_to_the_exact_least_value() -> None:
    with mp.workdps(30):
        place = mp.findroot(lambda x: 0.9 * mp.sech(9 * x) ** 2 + 0.8 * x, -0.2)
        exact = mp.mpf(0.1) * mp.tanh(9 * place) + mp.mpf(0.4) * place**2
        assert place > -1 and exact < 0.4 - 0.1
    status, bundles, _ = search(bent(float(exact) - 0.02), 2000)
    assert status == "unsat" and bundles > 1
    assert search(bent(float(exact) + 1e-7), 40)[0] == "unknown"


def test_inputs_with_a_kink_at_the_centre_of_their_box_are_split() -> None:
    class Kinked(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(torch.relu(x) - torch.relu(-x), -1)

    model = fgp_vnn.load_model(Kinked(), torch.zeros(1, 2))
    y = fgp_vnn.variables(model)[1].flatten()
    box = [-1.0, -1.0], [1.0, 1.0]
    verdict = fgp_vnn.verify(model, inputs=box, unsafe=y[0] + y[1] <= 0.9, timeout=120)
    assert verdict.status == "unsat"
    assert verdict.statistics["boxes"] < 100
