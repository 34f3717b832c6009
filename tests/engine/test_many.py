"""Boxes of one property that are bounded together: what is proved holds for each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fgp_vnn.api.boxes import BoxProblems
from fgp_vnn.api.verify import verify
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.certificate.checker.check import check_files
from fgp_vnn.engine.many import proved_at_once
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network import Network, load_network
from fgp_vnn.network.activations.table import ACTIVATIONS
from fgp_vnn.network.model import Dense
from fgp_vnn.property.model import Array, Case, Conjunction, Property
from fgp_vnn.property.write import write_property
from fgp_vnn.strategy import Inputs, Strategy
from tests.helpers.command_line import small_model
from tests.helpers.network_models import Builder
from tests.helpers.solving import solve_boxes

COUNT = 40
NONE = np.zeros(1, dtype=np.bool_)
FEW = Strategy(inputs=Inputs(batch=7))  # several batches, the last one not full
APART = Strategy(inputs=Inputs(cases=COUNT + 1))


def boxes(random: np.random.Generator, inputs: int) -> list[tuple[Array, Array]]:
    centers = random.uniform(-1, 1, size=(COUNT, inputs))
    return [(c - 0.05, c + 0.05) for c in centers]


def sampled(network: Network, lower: Array, upper: Array) -> Array:
    """Outputs [points, outputs] at corners and other random points of a box."""
    low, high = (torch.as_tensor(side) for side in (lower, upper))
    noise = torch.rand(200, len(low), generator=torch.Generator().manual_seed(0)).double()
    noise[100:] = noise[100:].round()
    return np.asarray(network(low + noise * (high - low)))


def cases_of(network: Network, slack: float, seed: int = 0) -> tuple[Case, ...]:
    """A box each, with two conjunctions that the sampled outputs miss by the slack, or meet."""
    random = np.random.default_rng(seed)
    found = []
    for lower, upper in boxes(random, 4):
        y = sampled(network, lower, upper)
        high = Conjunction(np.array([[-1.0, 0.0]]), np.array([-y[:, 0].max() - slack]), NONE)
        both = Conjunction(
            np.array([[0.0, 1.0], [-1.0, 0.0]]),
            np.array([y[:, 1].min() - slack, 1e3]),
            np.array([True, False]),
        )
        found.append(Case(lower, upper, (high, both)))
    return tuple(found)


def proved(
    network: Network, cases: Sequence[Case], budget: Budget, strategy: Strategy
) -> list[bool]:
    return [w is not None for w in proved_at_once(network, cases, budget, strategy)]


def test_a_case_is_proved_by_one_row_of_each_conjunction(tmp_path: Path) -> None:
    network = load_network(small_model(tmp_path)).network
    for weights in proved_at_once(network, cases_of(network, 1.0), UNLIMITED, FEW):
        assert weights is not None and weights.tolist() == [1, 1, 0]


@pytest.mark.parametrize("slack", [1.0, 0.01])
def test_boxes_that_are_bounded_together_have_a_certificate(tmp_path: Path, slack: float) -> None:
    path = small_model(tmp_path)
    cases = cases_of(load_network(path).network, slack)
    prop, proof = tmp_path / "p.vnnlib", tmp_path / "proof.npz"
    write_property(prop, Property(cases, 4, 2))
    verdict = verify(path, prop, certificate=proof)
    assert verdict.status == "unsat" and verdict.certificate
    assert verdict.statistics["boxes"] >= COUNT  # all of them were bounded together
    network = Path(path).read_bytes()
    assert check_files(proof.read_bytes(), network, prop.read_bytes()).cases == COUNT


@pytest.mark.parametrize("strategy", [Strategy(), FEW], ids=["one batch", "several"])
def test_cases_that_are_met_are_not_proved_and_clear_ones_are(
    tmp_path: Path, strategy: Strategy
) -> None:
    network = load_network(small_model(tmp_path)).network
    clear, met = cases_of(network, 1.0), cases_of(network, 0.0)
    mixed = [(clear if i % 3 else met)[i] for i in range(COUNT)]
    assert proved(network, mixed, UNLIMITED, strategy) == [i % 3 > 0 for i in range(COUNT)]


def test_time_that_is_up_proves_nothing(tmp_path: Path) -> None:
    network = load_network(small_model(tmp_path)).network
    over = Budget(0.0, 1 << 30)
    assert proved(network, cases_of(network, 1.0), over, FEW) == [False] * COUNT


def test_forms_carried_forward_prove_the_same(tmp_path: Path) -> None:
    builder = Builder([1, 4])
    x = "x"
    for size in ((4, 60), (60, 60), (60, 60)):
        x = builder.op("Relu", builder.op("MatMul", x, builder.random(*size)))
    network = load_network(
        builder.save(tmp_path / "a.onnx", builder.op("MatMul", x, builder.random(60, 2)))
    ).network
    clear, met = cases_of(network, 500.0), cases_of(network, 0.0)
    for factor in (0, 1 << 40):
        strategy = Strategy(slopes=replace(Strategy().slopes, forward_factor=factor))
        assert proved(network, clear, UNLIMITED, strategy) == [True] * COUNT
        assert proved(network, met, UNLIMITED, strategy) == [False] * COUNT


@pytest.mark.parametrize("slack", [1.0, 0.01, -0.01])
def test_the_verdict_is_that_of_the_cases_one_by_one(tmp_path: Path, slack: float) -> None:
    loaded = load_network(small_model(tmp_path))
    prop = Property(cases_of(loaded.network, slack), 4, 2)
    found = [
        solve_boxes(BoxProblems(Settings(), strategy=strategy), loaded, prop, UNLIMITED)
        for strategy in (Strategy(), APART)
    ]
    assert found[0].status == found[1].status == ("unsat" if slack > 0 else "sat")
    for verdict in found:
        if verdict.counterexample is not None:
            x, y = verdict.counterexample.x, verdict.counterexample.y
            assert prop.broken_by(x, y.astype(np.float64))


def test_boxes_that_time_does_not_reach_are_not_proved(tmp_path: Path) -> None:
    loaded = load_network(small_model(tmp_path))
    prop = Property(cases_of(loaded.network, 1.0), 4, 2)
    boxes = BoxProblems(Settings(), strategy=APART)
    verdict = solve_boxes(boxes, loaded, prop, Budget(0.0, 1 << 30))
    assert verdict.status == "timeout" and "time is up" in verdict.reason


def wave() -> Network:
    """sin(3 x_0) + x_1 / 10, of which intervals of width 1 say little."""
    first = Dense((0,), (torch.tensor([[3.0, 0.0]]).double(),), torch.zeros(1).double())
    weights = torch.tensor([[0.0, 0.1]]).double(), torch.ones(1, 1).double()
    last = Dense((0, 1), weights, torch.zeros(1).double())
    return Network((first,), last, 2, (ACTIVATIONS["Sin"]({}),))


def test_boxes_of_a_smooth_network_are_halved_until_they_are_proved() -> None:
    """Whether the output reaches a limit a little above, or below, its greatest value."""
    network = wave()
    found: list[Case] = []
    for slack in (0.02, -0.02) * 10:
        low = np.array([0.1 * len(found) - 1, -1.0])
        high = low + np.array([1.0, 0.5])
        x = np.linspace(low[0], high[0], 2001)
        most = np.sin(3 * x).max() + 0.1 * high[1] + slack
        found.append(Case(low, high, (Conjunction(np.array([[-1.0]]), np.array([-most]), NONE),)))
    expected = [True, False] * 10
    assert proved(network, found, UNLIMITED, Strategy()) == expected
    once = proved(network, found, UNLIMITED, Strategy(inputs=Inputs(halvings=0)))
    assert sum(once) < 10 and not any(once[1::2])
