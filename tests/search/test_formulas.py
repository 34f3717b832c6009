"""Logical formulas written as networks: every row of a conjunction has a say in what is split."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import ask
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.inputs import split_inputs
from tests.helpers.random_networks import confirm_in
from tests.helpers.ticking import Ticking

Clause = dict[int, int]  # from a variable to its sign in the clause
VARIABLES, LEAVES = 20, 30


def _of_a_tree(seed: int) -> list[Clause]:
    """Clauses each of which excludes one leaf of a random decision tree: together, everything."""
    rng, clauses = np.random.default_rng(seed), list[Clause]([{}])
    while len(clauses) < LEAVES:
        clauses.sort(key=len)
        clause = clauses.pop(0)
        variable = int(rng.choice([v for v in range(VARIABLES) if v not in clause]))
        clauses += [clause | {variable: sign} for sign in (1, -1)]
    return clauses


def _search(clauses: list[Clause]) -> Outcome:
    """Whether inputs in [0, 1] satisfy all clauses, and each input is 0 or 1.

    The first output is the sum of relu(1 - the number of a clause's true literals); the second is
    the sum of relu(x) - relu(2 x - 1), which is 0 only at 0 and 1.
    """
    signs = np.array([[clause.get(v, 0) for v in range(VARIABLES)] for clause in clauses])
    eye = np.eye(VARIABLES)
    weight = np.concatenate([-signs, eye, 2 * eye])
    bias = np.concatenate([1 - (signs < 0).sum(-1), np.zeros(VARIABLES), -np.ones(VARIABLES)])
    sums = np.zeros((2, len(weight)))
    sums[0, : len(clauses)] = 1
    sums[1, len(clauses) :] = np.repeat([1, -1], VARIABLES)
    first = Dense((0,), (torch.tensor(weight),), torch.tensor(bias))
    last = Dense((1,), (torch.tensor(sums),), torch.zeros(2).double())
    network = Network((first,), last, VARIABLES)
    unsafe = Conjunction(np.eye(2), np.zeros(2), np.zeros(2, bool))
    whole = Box(torch.zeros(VARIABLES).double(), torch.ones(VARIABLES).double())
    query = ask(network, whole, [unsafe])
    return split_inputs(query, confirm_in(query), Ticking(200), Subdivision())


@pytest.mark.parametrize("seed", range(3))
def test_a_formula_without_a_solution_takes_about_as_many_boxes_as_its_tree(seed: int) -> None:
    outcome = _search(_of_a_tree(seed))
    assert outcome.status == "unsat"
    assert outcome.statistics["boxes"] <= 6 * LEAVES


@pytest.mark.parametrize("seed", range(3))
def test_a_formula_with_a_solution_is_never_unsat(seed: int) -> None:
    clauses = _of_a_tree(seed)
    assert _search(clauses[:seed] + clauses[seed + 1 :]).status != "unsat"
