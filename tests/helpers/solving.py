"""A query taken through the steps of `verify`, or one of them."""

from __future__ import annotations

from torch import Tensor

from fgp_vnn.api.boxes import BoxProblems
from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.bounding import bound_root
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network import LoadedNetwork
from fgp_vnn.property import Property
from fgp_vnn.query import Query
from fgp_vnn.search.best_first import Keep, keep_nothing
from fgp_vnn.search.neurons import NeuronSplits
from fgp_vnn.strategy import Strategy


def solve(
    query: Query,
    confirm: Confirm,
    settings: Settings,
    budget: Budget,
    strategy: Strategy | None = None,
) -> Verdict:
    """Whether a point of the domain meets the unsafe set."""
    strategy = strategy or Strategy()
    return run(Problem(query, confirm, settings, budget, strategy, NullLog(query)), "verify")


def solve_boxes(
    boxes: BoxProblems, loaded: LoadedNetwork, prop: Property, budget: Budget
) -> Verdict:
    """The verdict on all boxes of a property."""
    for problem in boxes.of_network(loaded, prop, budget):
        boxes.add(run(problem, "verify"))
    return boxes.verdict()


def search_neurons(
    query: Query,
    bounds: LayerBounds,
    confirm: Confirm,
    budget: Budget,
    strategy: Strategy,
    lp: bool = False,
    keep: Keep = keep_nothing,
) -> Outcome:
    """What the splits of neurons alone say, of a search from its beginning to its end."""
    search = NeuronSplits.begin(query, bounds, confirm, budget, strategy, lp, keep)
    search.run(search.enough)
    return search.outcome()


def first_bounds(query: Query, budget: Budget) -> Tensor:
    """Lower bounds [rows] of the outputs, once the stable neurons are left out."""
    log = NullLog(query)
    problem = Problem(query, lambda points: None, Settings(), budget, Strategy(), log)
    least = bound_root(problem)
    problem.drop_stable()
    return least
