"""Numbers that overflow prove nothing: no region is closed, dropped or passed over by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fgp_vnn.base.rounding import positive
from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.regions.halfspaces import HalfSpaces, contradiction, part_within_gap, without_implied
from fgp_vnn.search.bundles import bound, context_and_root
from fgp_vnn.search.choice import choose
from fgp_vnn.search.walk.patterns import Patterns
from fgp_vnn.strategy import Ascent, Neurons
from tests.helpers.random_cases import exact_confirm, random_case
from tests.helpers.random_networks import confirm_in, random_domain, random_network
from tests.helpers.solving import solve
from tests.helpers.ticking import Ticking

ONE = torch.ones(1, dtype=torch.float64)
DOMAINS: dict[str, Domain] = {
    "box": Box(0 * ONE, 2 * ONE),
    "l2": L2Ball(ONE, 1.0),
    "l1": L1Ball(ONE, 1.0),
    "clipped l2": Clipped(L2Ball(ONE, 1.5), Box(0 * ONE, 2 * ONE)),
    "clipped l1": Clipped(L1Ball(ONE, 1.5), Box(0 * ONE, 2 * ONE)),
}
ROW = Conjunction(np.ones((1, 1)), np.zeros(1), np.zeros(1, bool))
ENGINES: dict[str, Settings] = {
    "walk": Settings(engine="walk", attack=False),
    "paper's walk": Settings(
        engine="walk", attack=False, alternate=False, combined=False, signed=False
    ),
    "walk with programs": Settings(engine="walk", attack=False, alternate=False, lp=True),
    "split": Settings(engine="split", attack=False, lp=True),
    "auto": Settings(attack=False),
}


def line(hidden: int) -> Network:
    """y = 1.9 - x for x >= 0, through so many hidden layers."""
    weight, zero = ONE.unsqueeze(0), 0 * ONE
    layers = tuple(Dense((k,), (weight,), zero) for k in range(hidden))
    return Network(layers, Dense((hidden,), (-weight,), 1.9 * ONE), 1)


def loud(query: Query, scale: float) -> Query:
    """The same question with each row of the unsafe set so many times as large."""
    output = query.network.output
    grown = replace(output, rows=output.rows * scale, offset=output.offset * scale)  # type: ignore
    return replace(query, network=replace(query.network, output=grown))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("hidden", "kind"), [*((2, kind) for kind in DOMAINS), (0, "box"), (0, "clipped l2")]
)
def test_a_row_that_overflows_is_not_passed_over(hidden: int, kind: str, engine: str) -> None:
    """1e308 y <= 0 is met from x = 1.9 on; what is squared for a round domain overflows earlier."""
    for scale in (1.7e308, 1e154) if "l2" in kind else (1.7e308,):
        row = Conjunction(np.array([[scale]]), np.zeros(1), np.zeros(1, bool))
        query = ask(line(hidden), DOMAINS[kind], [row])
        verdict = solve(query, exact_confirm(query), ENGINES[engine], Ticking(100))
        assert verdict.status in ("sat", "unknown", "timeout"), verdict.reason


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_is_no_number_is_not_passed_over(engine: str) -> None:
    """y = 1.9 + 2 x - 3 x: times 1.7e308, the weights are infinite and their sum is no number."""
    twice = Dense((0,), (torch.ones(2, 1).double(),), torch.zeros(2).double())
    less = Dense((1,), (torch.tensor([[2.0, -3.0]]).double(),), 1.9 * ONE)
    row = Conjunction(np.array([[1.7e308]]), np.zeros(1), np.zeros(1, bool))
    query = ask(Network((twice,), less, 1), DOMAINS["box"], [row])
    verdict = solve(query, exact_confirm(query), ENGINES[engine], Ticking(100))
    assert verdict.status != "unsat", verdict.reason


@pytest.mark.parametrize("engine", ENGINES)
def test_questions_that_are_met_are_never_closed_by_overflow(engine: str) -> None:
    seen = 0
    for number in range(8):
        case = random_case(number)
        if case.truth != "sat":
            continue
        query = loud(case.query, 10.0 ** (300 + number % 9))
        verdict = solve(query, confirm_in(query), ENGINES[engine], Ticking(50))
        assert verdict.status != "unsat", f"case {number}"
        seen += 1
    assert seen > 4


BAD = (torch.nan, torch.inf, -torch.inf)


def test_only_finite_positive_differences_are_proofs() -> None:
    gaps = torch.tensor([1.0, 5e-324, 0.0, -1.0, *BAD], dtype=torch.float64)
    assert positive(gaps).tolist() == [True, True] + [False] * 5
    for bad in BAD:
        pair = torch.tensor([bad, 1.0], dtype=torch.float64)
        assert part_within_gap(pair, pair.flip(0)).tolist() == [0.0, 0.0]
    assert part_within_gap(3 * ONE, 0 * ONE) > 1e300  # a constant stays what it is


def test_sums_that_overflow_contradict_nothing() -> None:
    """1.5 * 1.5e308 - 2 * 1.7e308 < 0, but the first of the products is already infinite."""
    rows = torch.zeros(1, 3, 1, dtype=torch.float64)
    values = torch.tensor([[1.5e308, -1.7e308, -1.7e308]], dtype=torch.float64)
    spaces = HalfSpaces(rows, values, torch.zeros_like(values))
    assert not contradiction(DOMAINS["box"], spaces, torch.tensor([[1.5, 1.0, 1.0]]).double())


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_constraint_that_overflows_takes_no_part_and_harms_no_other(kind: str) -> None:
    """x <= -1 shuts out every domain, whatever else there is."""
    for bad in BAD:
        for part in range(3):
            rows = torch.tensor([[[1.0], [1.0]]], dtype=torch.float64)
            values = torch.tensor([[0.5, 2.0]], dtype=torch.float64)
            errors = torch.full((1, 2), 1e-12, dtype=torch.float64)
            (rows, values, errors)[part][0, 0] = bad
            spaces = without_implied(DOMAINS[kind], HalfSpaces(rows, values, errors))
            weights = torch.eye(2, dtype=torch.float64)
            shut = [bool(contradiction(DOMAINS[kind], spaces, w.unsqueeze(0))) for w in weights]
            assert shut == [False, True], (bad, part)


def test_bounds_that_are_no_numbers_leave_a_neuron_free() -> None:
    query = ask(random_network(0, widths=(3,)), random_domain(0), [])
    for bad in BAD:
        lower = torch.tensor([[bad, 1.0, -1.0]], dtype=torch.float64)
        upper = torch.tensor([[bad, 2.0, -0.5]], dtype=torch.float64)
        patterns = Patterns(query, LayerBounds((lower,), (upper,)))
        crossed = torch.ones(3, 1, dtype=torch.bool)
        (free,) = patterns.free(crossed)
        assert free.shape == (1,)  # the first neuron alone


def test_a_neuron_with_a_bound_that_is_no_number_stays_open_and_proves_nothing() -> None:
    query = ask(line(1), DOMAINS["box"], [ROW])
    for lower, upper in ((torch.nan, 2.0), (-1.0, torch.nan), (torch.nan, torch.nan)):
        bounds = LayerBounds((lower * ONE.unsqueeze(0),), (upper * ONE.unsqueeze(0),))
        assert bool(bounds.unstable()[0].all())
        rounding = Rounding(query.network, query.domain, bounds)
        rows = ONE.reshape(1, 1, 1)
        passed = backward(query.network, query.domain, 1, rows, bounds.lines(), rounding=rounding)
        assert not bool(positive(passed.least).any())


@pytest.mark.parametrize("candidates", [1, 2])
@pytest.mark.parametrize("scale", [1e154, -1e154, 1.7e308])
def test_a_bundle_is_split_at_an_open_neuron_where_gains_overflow(
    candidates: int, scale: float
) -> None:
    """Of four neurons the last is open; what splitting it gains is no float32."""
    weight = torch.ones(4, 1, dtype=torch.float64)
    bias = torch.tensor([1.0, 1.0, 1.0, -1.0], dtype=torch.float64)
    last = torch.tensor([[0.0, 0.0, 0.0, scale]], dtype=torch.float64)
    network = Network((Dense((0,), (weight,), bias),), Dense((1,), (last,), 0 * ONE), 1)
    query = ask(network, DOMAINS["box"], [ROW])
    bounds = root_bounds(network, query.domain, budget=UNLIMITED)
    context, root = context_and_root(
        query, bounds, UNLIMITED, Ascent(steps=1), Neurons(candidates=candidates)
    )
    bounded = bound(context, root)
    assert bounded.crossing.tolist() == [[False, False, False, True]]
    assert choose(context, bounded, torch.zeros(1, dtype=torch.long)).tolist() == [3]
