"""The LP step on single regions: evidence that holds, candidates that lie in the region."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import clarabel
import highspy
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.regions.halfspaces import HalfSpaces, contradiction
from fgp_vnn.regions.lp import RegionEvidence, solve_region
from fgp_vnn.regions.programs import Optimum, RegionProgram, solve_program
from fgp_vnn.strategy import Programs
from tests.helpers.exact import polytope
from tests.helpers.half_spaces import met_nowhere, met_somewhere
from tests.helpers.random_networks import DOMAINS, generator, normal, random_domain


def meets(domain: Domain, spaces: HalfSpaces, answer: RegionEvidence, tolerance: float) -> bool:
    """Whether a candidate lies in the domain and, up to a part of their reach, in all spaces."""
    rows, values = spaces.rows[0], spaces.values[0]
    worst = (answer.points - domain.center) @ rows.T + values
    near = (worst <= tolerance * domain.outer_support(rows)).all(-1)
    return bool(near.any()) and bool(domain.box().contains(answer.points).all())


@pytest.mark.parametrize("size", [(2, 6), (6, 20)])
@pytest.mark.parametrize("kind", DOMAINS)
def test_planted_regions_are_decided(kind: str, size: tuple[int, int]) -> None:
    for seed in range(4):
        domain, spaces, _ = met_nowhere(seed, kind, inputs=size[0], constraints=size[1])
        answer = solve_region(domain, spaces, 1)
        assert answer.multipliers is not None and not len(answer.points) and answer.solved
        assert contradiction(domain, spaces, answer.multipliers.unsqueeze(0))
        domain, spaces, _ = met_somewhere(
            seed, kind, inputs=size[0], constraints=size[1], margin=1e-3
        )
        answer = solve_region(domain, spaces, 1)
        assert answer.multipliers is None
        assert meets(domain, spaces, answer, 1e-9)


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_constraint_of_zeros_alone_does_not_keep_points_at_the_edge(kind: str) -> None:
    domain, spaces, _ = met_somewhere(1, kind, margin=1e-2)
    none = HalfSpaces(*(torch.zeros_like(part[:, :1]) for part in spaces))
    both = HalfSpaces(*(torch.cat(pair, 1) for pair in zip(spaces, none, strict=True)))
    answer = solve_region(domain, both, 2)
    assert meets(domain, spaces, answer, -1e-3)


@pytest.mark.parametrize("kind", ["box", "thin box", "l1"])
def test_random_regions_are_decided_as_another_program_has_it(kind: str) -> None:
    seen = {True: 0, False: 0}
    for seed in range(20):
        source = generator(seed)
        domain = random_domain(seed, kind, inputs=3)
        rows = normal(source, 10, 3)
        values = normal(source, 10) * 0.3 * domain.support(rows) - 0.3 * domain.support(rows)
        matrix, right = polytope(domain)
        center = domain.center.numpy()
        # minimise s such that rows . (x - c) + values <= s
        tall = np.vstack(
            [
                np.column_stack([rows.numpy(), -np.ones(10)]),
                np.column_stack([matrix, np.zeros(len(matrix))]),
            ]
        )
        limits = np.concatenate([rows.numpy() @ center - values.numpy(), right])
        free = [(None, None)] * 4
        least = linprog([0, 0, 0, 1], A_ub=tall, b_ub=limits, bounds=free, method="highs").fun
        spaces = HalfSpaces(rows[None], values[None], torch.full((1, 10), 1e-14).double())
        answer = solve_region(domain, spaces, 2)
        if abs(least) > 1e-6:
            assert (answer.multipliers is not None) == (least > 0)
            assert least > 0 or meets(domain, spaces, answer, 1e-9)
            seen[least > 0] += 1
    assert min(seen.values()) > 2


@pytest.mark.parametrize("kind", DOMAINS)
@given(seed=st.integers(0, 60), noise=st.integers(0, 1 << 30))
def test_a_solver_that_lies_closes_nothing(kind: str, seed: int, noise: int) -> None:
    """Whatever numbers come out of it, only multipliers that hold count."""
    source = np.random.default_rng(noise)

    def lie(program: RegionProgram, end: float, how: Programs) -> Optimum | None:
        told = solve_program(program, end, how)
        if told is None:
            return None
        spoilt = source.normal(size=len(told.multipliers)) * 10.0 ** source.integers(-3, 4)
        mixed = told.multipliers * source.integers(0, 2) + spoilt
        return Optimum(source.normal(size=len(told.point)), mixed)

    domain, spaces, _ = met_somewhere(seed, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fgp_vnn.regions.lp.solve_program", lie)
        answer = solve_region(domain, spaces, 1)
    assert answer.multipliers is None


@pytest.mark.parametrize("number", [np.nan, np.inf, None])
@pytest.mark.parametrize("kind", DOMAINS)
def test_a_solver_that_fails_leaves_a_region_open_and_says_so(
    kind: str, number: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a status, or by numbers that are none."""
    failed, solved = clarabel.SolverStatus.NumericalError, clarabel.SolverStatus.Solved
    numbers = [number or 0.0] * 20
    told = SimpleNamespace(status=solved if number else failed, x=numbers, z=numbers)
    told.col_value = told.row_dual = numbers
    solver = SimpleNamespace(solve=lambda: told)
    monkeypatch.setattr(clarabel, "DefaultSolver", lambda *program: solver)
    if number is None:
        monkeypatch.setattr(highspy.Highs, "getModelStatus", lambda solver: None)
    else:
        monkeypatch.setattr(highspy.Highs, "getSolution", lambda solver: told)
    domain, spaces, _ = met_nowhere(0, kind)
    left = solve_region(domain, spaces, 1)
    assert left.multipliers is None and not len(left.points) and left.gap.kind == "failed"


@pytest.mark.parametrize("power", [-900, -300, 300, 900])
@pytest.mark.parametrize("kind", DOMAINS)
def test_the_magnitude_of_constraints_makes_no_difference(kind: str, power: int) -> None:
    """Where float64 can hold it: each constraint is brought to about 1, exactly."""
    for seed in range(4):
        powers = torch.tensor([power, 0, -power, power // 2] * 2, dtype=torch.float64)
        scale = torch.exp2(powers)
        for make, margin in ((met_nowhere, 1e-3), (met_somewhere, 1e-3)):
            domain, spaces, _ = make(seed, kind, margin=margin)
            rows, values, errors = spaces
            moved = HalfSpaces(rows * scale.unsqueeze(-1), values * scale, errors * scale)
            answer = solve_region(domain, moved, 1)
            assert (answer.multipliers is not None) == (make is met_nowhere)
            assert answer.multipliers is not None or meets(domain, spaces, answer, 1e-9)


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_tie_is_never_closed(kind: str) -> None:
    for seed in range(12):
        domain, spaces, _ = met_somewhere(seed, kind)
        both = HalfSpaces(*(torch.cat([part, part], 1) for part in spaces))
        sign = torch.cat([torch.ones(8), -torch.ones(8)]).double()
        met_with_equality = both._replace(
            rows=both.rows * sign.unsqueeze(-1), values=both.values * sign
        )
        few = torch.tensor([0, 8])  # a hyperplane through the planted point, from both sides
        tie = HalfSpaces(*(part[:, few] for part in met_with_equality))
        answer = solve_region(domain, tie, 1)
        assert answer.multipliers is None and meets(domain, tie, answer, 1e-8)
        assert answer.gap.kind in ("tie", "wide") and answer.gap.width < 1e-8


def test_without_time_nothing_is_solved() -> None:
    domain, spaces, _ = met_nowhere(0, "box")
    answer = solve_region(domain, spaces, 1, seconds=0.0)
    assert answer.multipliers is None and not len(answer.points) and not answer.solved


def test_without_constraints_any_point_will_do() -> None:
    for kind in DOMAINS:
        domain = random_domain(0, kind)
        spaces = HalfSpaces(*(torch.zeros(s).double() for s in ((1, 3, 2), (1, 3), (1, 3))))
        answer = solve_region(domain, spaces, 1)
        assert answer.multipliers is None and len(answer.points)


@pytest.mark.parametrize("kind", ["l2", "l1", "clipped l2", "clipped l1", "box"])
def test_a_domain_of_one_point_is_decided_by_its_values(kind: str) -> None:
    domain = random_domain(0, kind)
    center = domain.center
    point: Domain = Box(center, center)
    if isinstance(domain, Clipped):
        point = replace(domain, ball=replace(domain.ball, radius=0.0))
    elif not isinstance(domain, Box):
        point = replace(domain, radius=0.0)  # type: ignore[type-var]
    rows, zero = torch.ones(1, 2, 2).double(), torch.zeros(1, 2).double()
    for value, empty in ((0.5, True), (-0.5, False)):
        values = torch.tensor([[value, -1.0]], dtype=torch.float64)
        answer = solve_region(point, HalfSpaces(rows, values, zero), 1)
        assert (answer.multipliers is not None) == empty
        assert empty or torch.equal(answer.points, center.expand_as(answer.points))


def test_numbers_that_overflowed_prove_nothing() -> None:
    domain, spaces, _ = met_nowhere(0, "box")
    for bad in (torch.inf, torch.nan):
        broken = spaces._replace(values=spaces.values * bad)
        answer = solve_region(domain, broken, 1)
        assert answer.multipliers is None
