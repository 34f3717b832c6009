"""Queries: the rows of the unsafe set as outputs of the network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from tests.helpers.met import is_met
from tests.helpers.random_networks import random_domain, random_network, random_rows, sample


def conjunction(rows: list[list[float]], limits: list[float], strict: list[bool]) -> Conjunction:
    return Conjunction(
        np.array(rows).reshape(len(limits), 2), np.array(limits), np.array(strict, bool)
    )


def example() -> Query:
    """(y_0 <= 1 and y_1 < 2) or y_0 - y_1 <= 0."""
    both = conjunction([[1, 0], [0, 1]], [1, 2], [False, True])
    return ask(random_network(0), random_domain(0), [both, conjunction([[1, -1]], [0], [False])])


@given(st.integers(0, 1000), st.booleans())
def test_the_outputs_are_the_rows_minus_their_limits(seed: int, residual: bool) -> None:
    network = random_network(seed, "residual" if residual else "chain", outputs=3)
    unsafe = random_rows(seed, 3, 2, 1, 3)
    query = ask(network, random_domain(seed), unsafe)
    x = sample(query.domain, 20, seed)
    rows = np.concatenate([c.rows for c in unsafe])
    limits = np.concatenate([c.limits for c in unsafe])
    expected = network(x).numpy() @ rows.T - limits
    np.testing.assert_allclose(query.network(x).numpy(), expected, atol=1e-12)
    assert query.disjunct.tolist() == [0, 0, 1, 2, 2, 2]


@given(st.integers(0, 1000), st.booleans())
def test_a_disjunct_is_met_where_the_property_says_so(seed: int, strict: bool) -> None:
    network = random_network(seed)
    unsafe = random_rows(seed, 2, 2, 1, strict=strict)
    query = ask(network, random_domain(seed), unsafe)
    x = sample(query.domain, 40, seed)
    met = is_met(query, query.network(x))
    for point, flags in zip(network(x).numpy(), met.tolist(), strict=True):
        assert flags == [c.meets(point) for c in unsafe]


def test_equality_meets_a_row_unless_it_is_strict() -> None:
    query = example()
    g = torch.tensor([[0.0, -1.0, 1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0], [-1.0, -1.0, 1.0]])
    assert is_met(query, g).tolist() == [
        [True, False],
        [False, False],
        [False, True],
        [True, False],
    ]


def test_a_disjunct_is_closed_where_one_of_its_rows_cannot_be_met() -> None:
    query = example()
    lower = torch.tensor([[0.0, -1.0, 1e-9], [-1.0, 0.0, 0.0], [1e-9, -1.0, -1.0]])
    assert query.closed(lower).tolist() == [[False, True], [True, False], [True, False]]


def test_bounds_that_are_not_numbers_close_nothing() -> None:
    query = example()
    assert not bool(query.closed(torch.full((3, 3), torch.nan)).any())
    assert not bool(query.closed(torch.full((3, 3), -torch.inf)).any())


@given(st.lists(st.floats(-3, 3), min_size=3, max_size=3))
def test_what_is_closed_by_its_values_is_not_met(values: list[float]) -> None:
    query = example()
    g = torch.tensor([values])
    assert bool((query.closed(g) == ~is_met(query, g)).all())


def test_the_worst_row_decides_a_conjunction() -> None:
    worst = example().worst(torch.tensor([[3.0, -1.0, 5.0], [-2.0, -1.0, -7.0]]))
    assert worst.tolist() == [[3.0, 5.0], [-1.0, -7.0]]


@pytest.mark.parametrize("keep", [[0], [1], [1, 0], [2, 0], []])
def test_a_part_of_the_disjuncts_is_the_same_question_about_them(keep: list[int]) -> None:
    query = ask(random_network(4), random_domain(4), random_rows(4, 2, 2, 1, 3))
    part = query.only(keep)
    assert part.disjuncts == len(keep)
    g = query.network(sample(query.domain, 30, 4))
    again = part.network(sample(part.domain, 30, 4))
    assert torch.equal(is_met(part, again), is_met(query, g)[:, keep])
    for new, old in enumerate(keep):
        torch.testing.assert_close(again[:, part.rows_of(new)], g[:, query.rows_of(old)])


def test_no_disjunct_is_met_nowhere() -> None:
    query = ask(random_network(1), random_domain(1), [])
    assert query.disjuncts == 0
    assert not bool(is_met(query, query.network(sample(query.domain, 5))).any())


def test_a_conjunction_without_rows_is_met_everywhere_and_never_closed() -> None:
    query = ask(random_network(1), random_domain(1), [conjunction([], [], [])])
    g = query.network(sample(query.domain, 5))
    assert bool(is_met(query, g).all())
    assert not bool(query.closed(g).any())


def test_a_query_moves_to_another_precision_as_a_whole() -> None:
    single = example().to("cpu", torch.float32)
    assert single.network.dtype == single.domain.center.dtype == torch.float32
    x = sample(example().domain, 10)
    torch.testing.assert_close(single.network(x.float()), example().network(x).float())


def test_rows_that_disjuncts_share_are_told_apart_from_others() -> None:
    """Rows 0 and 3 are the same, and so are 2 and 5; row 4 differs from row 1 in its limit."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    limits = np.array([0.5, 1.0, 2.0]), np.array([0.5, 3.0, 2.0])
    unsafe = [Conjunction(rows, limit, np.zeros(3, bool)) for limit in limits]
    network = Network((), Dense((0,), (torch.eye(2).double(),), torch.zeros(2).double()), 2)
    query = ask(network, Box(-torch.ones(2).double(), torch.ones(2).double()), unsafe)
    first, place = query.distinct
    assert first.tolist() == [0, 1, 2, 4]
    assert place.tolist() == [0, 1, 2, 0, 3, 2]
