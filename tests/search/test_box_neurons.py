"""Boxes that are decided by splits of neurons, against samples and the search without them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search import box_neurons
from fgp_vnn.search.box_neurons import Boxes, BoxNeurons
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.inputs import split_inputs
from fgp_vnn.strategy import BoxTurn, Inputs, Strategy
from tests.helpers.random_networks import confirm_in, random_network, random_rows
from tests.helpers.ticking import Ticking


def _query(seed: int, lift: float, shape: tuple[int, ...] = (1, 2)) -> Query:
    """Whether an output falls below its least sampled value by `lift`."""
    network = random_network(seed, inputs=3, widths=(8, 8))
    box = Box(-torch.ones(3).double(), torch.ones(3).double())
    points = torch.rand(20_000, 3, generator=torch.Generator().manual_seed(seed)).double() * 2 - 1
    unsafe, outputs = [], network(points).numpy()
    for c in random_rows(seed, 2, *shape):
        worst = (outputs @ c.rows.T - c.limits).max(-1).min()
        unsafe.append(Conjunction(c.rows, c.limits + worst - lift, c.strict))
    return ask(network, box, unsafe)


def _parts(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random boxes within the cube."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.rand(2, count, 3, generator=generator, dtype=torch.float64) * 2 - 1
    return ends.amin(0), ends.amax(0)


def _boxes(query: Query, lower: Tensor, upper: Tensor) -> Boxes:
    bounds = root_bounds(query.network, Box(lower, upper), budget=UNLIMITED)
    return Boxes(lower, upper, bounds, torch.zeros(len(lower), query.disjuncts, dtype=torch.bool))


def _met(query: Query, lower: Tensor, upper: Tensor) -> Tensor:
    """Which boxes hold a sampled point that meets a disjunct."""
    share = torch.rand(4000, 1, 3, generator=torch.Generator().manual_seed(7)).double()
    points = lower + share * (upper - lower)
    g = query.network(points.reshape(-1, 3)).reshape(4000, len(lower), -1)
    return (query.worst(g).amin(-1) <= 0).any(0)


@pytest.mark.parametrize("shape", [(1,), (3,), (1, 2)])
def test_no_box_with_a_counterexample_is_decided_and_most_others_are(
    shape: tuple[int, ...],
) -> None:
    decided, free = 0, 0
    for seed in range(8 if len(shape) > 1 else 3):
        query = _query(seed, lift=-0.3, shape=shape)
        lower, upper = _parts(24, seed)
        turns = BoxNeurons(query, lambda points: None, UNLIMITED, Strategy(), 16.0)
        done, met = turns.decided(_boxes(query, lower, upper)), _met(query, lower, upper)
        assert not (done & met).any()
        decided, free = decided + int(done.sum()), free + int((~met).sum())
    assert decided > 0.8 * free > 0


def test_a_counterexample_in_a_box_is_found_and_ends_the_turn() -> None:
    query = _query(1, lift=-0.5)
    turns = BoxNeurons(query, confirm_in(query), UNLIMITED, Strategy(), 16.0)
    done = turns.decided(_boxes(query, -torch.ones(1, 3).double(), torch.ones(1, 3).double()))
    assert turns.found is not None
    assert not done.any()


def test_disjuncts_that_are_shut_are_not_asked_about() -> None:
    query = _query(1, lift=-0.5)
    boxes = _boxes(query, -torch.ones(2, 3).double(), torch.ones(2, 3).double())
    turns = BoxNeurons(query, lambda points: None, UNLIMITED, Strategy(), 16.0)
    shut = torch.tensor([[True, True], [False, True]])
    assert turns.decided(boxes._replace(shut=shut))[0]
    assert turns.bundles > 0


def test_without_time_nothing_is_decided() -> None:
    query = _query(1, lift=0.1)
    boxes = _boxes(query, *_parts(8, 1))
    turns = BoxNeurons(query, lambda points: None, Budget.of(0.0, None), Strategy(), 16.0)
    assert not turns.decided(boxes).any()


def _search(query: Query, *, neurons: bool) -> Outcome:
    how = Subdivision(neurons=neurons, strategy=Strategy(inputs=Inputs(batch=4)))
    return split_inputs(query, confirm_in(query), UNLIMITED, how)


def test_a_search_with_turns_gives_the_same_verdicts_with_fewer_boxes() -> None:
    boxes, statuses = [0, 0], set()
    for seed in range(4):
        for lift in (-0.1, 0.05):
            query = _query(seed, lift, (2,))
            found = [_search(query, neurons=neurons) for neurons in (False, True)]
            assert found[0].status == found[1].status
            statuses.add(found[0].status)
            if found[0].status == "unsat":
                boxes = [b + f.statistics["boxes"] for b, f in zip(boxes, found, strict=True)]
    assert statuses == {"sat", "unsat"}
    assert 3 * boxes[1] < 2 * boxes[0]


def test_what_counts_as_few_follows_what_turns_decide() -> None:
    query = _query(2, lift=0.1)
    boxes = _boxes(query, *_parts(16, 3))
    easy = BoxNeurons(query, lambda points: None, UNLIMITED, Strategy(), 16.0)
    assert easy.decided(boxes).all()
    assert easy.few > 16
    met = _query(2, lift=-2.0)
    hard = BoxNeurons(met, lambda points: None, UNLIMITED, Strategy(), 16.0)
    whole = _boxes(met, -torch.ones(1, 3).double(), torch.ones(1, 3).double())
    assert not hard.decided(whole).any()
    assert hard.few < 16


def test_a_box_with_too_many_open_bundles_fails_at_once() -> None:
    met = _query(2, lift=-2.0)
    whole = _boxes(met, -torch.ones(1, 3).double(), torch.ones(1, 3).double())
    spent = []
    for most in (2, 16):
        strategy = Strategy(inputs=Inputs(turn=replace(BoxTurn(), open=most)))
        turns = BoxNeurons(met, lambda points: None, UNLIMITED, strategy, 16.0)
        assert not turns.decided(whole).any()
        spent.append(turns.bundles)
    assert spent[0] < spent[1]


def test_what_is_not_bounded_when_time_is_up_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_neurons, "ascents_at_once", lambda *asked: 1)
    query = _query(1, lift=0.1)
    boxes, bounded = _boxes(query, *_parts(12, 1)), []
    for moment in (3, 1_000_000):
        turns = BoxNeurons(query, lambda points: None, Ticking(moment), Strategy(), 16.0)
        done = turns.decided(boxes)
        bounded.append(turns.bundles)
        assert int(done.sum()) <= turns.bundles // query.disjuncts
    assert bounded[0] < 12 <= bounded[1]
