"""The steps before a search: attacks, bounds, reductions.

A step returns a verdict, or None after it has shrunk or bounded the problem for the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from fgp_vnn.attack.descent import falsify
from fgp_vnn.base.radius import Radius
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.windows import closed_by_windows
from fgp_vnn.engine.bounding import bound_forward, bound_root, open_disjuncts, optimise, reduce_to
from fgp_vnn.engine.problem import Problem
from fgp_vnn.strategy import Descent

Subject = TypeVar("Subject")  # a problem, a program, or the two ends of a radius
Step = Callable[[Subject], Verdict | Radius | None]
TIME_IS_UP = "time is up before a search"


def read_property(problem: Problem) -> Verdict | None:
    """Decide a query that has no disjunct, or a disjunct without rows."""
    query = problem.query
    if not query.disjuncts:
        return problem.verdict("unsat", "property")
    if bool((torch.bincount(query.disjunct, minlength=query.disjuncts) == 0).any()):
        # A disjunct without rows: every input is a counterexample that can be confirmed.
        if found := problem.confirm(query.domain.center.unsqueeze(0)):
            return problem.verdict("sat", "property", found)
        return problem.verdict("unknown", reason="all outputs are unsafe, but none was confirmed")
    return None


def attack_quickly(problem: Problem) -> Verdict | None:
    """A short attack: a few gradient steps."""
    attack = problem.strategy.attack
    return _attack(problem, attack.quick, attack.shares[0])


def attack_longer(problem: Problem) -> Verdict | None:
    """A longer attack: more gradient steps, from more starts."""
    attack = problem.strategy.attack
    return _attack(problem, attack.long, attack.shares[1])


def _attack(problem: Problem, descent: Descent, share: float) -> Verdict | None:
    if not problem.settings.attack:
        return None
    with problem.timed("attack"):
        seeded = replace(descent, seed=problem.settings.seed)
        budget = problem.budget.share(share)
        found = falsify(problem.query, problem.confirm, budget, seeded)
    return problem.verdict("sat", "attack", found) if found else None


def bound_plainly(problem: Problem) -> Verdict | None:
    """Plain linear bounds; drops stable neurons, closed disjuncts and, where the property allows
    it, the function at the end of the network (attacks before this step still use it)."""
    with problem.timed("bounds"):
        problem.take_off_end()
        problem.reduce_inputs()
        least = bound_forward(problem)
        return _reduce_to_open(problem, bound_root(problem) if least is None else least)


def bound_for_walk(problem: Problem) -> Verdict | None:
    """Plain linear bounds that keep all inputs: the walk reduces them itself."""
    with problem.timed("bounds"):
        return _reduce_to_open(problem, bound_root(problem))


def _reduce_to_open(problem: Problem, least: Tensor) -> Verdict | None:
    """Reduce the problem to the disjuncts that lower bounds [rows] on the outputs leave open."""
    left = open_disjuncts(problem, least)
    if not left:
        return problem.verdict("unsat", "bounds")
    reduce_to(problem, left)
    return None


def drop_stable(problem: Problem) -> None:
    """Drop stable neurons, unless the user forbids it; the bounds are used for nothing else."""
    if not problem.settings.stable:
        like, widths = problem.query.domain.center, problem.query.network.widths
        above = tuple(like.new_full((1, width), torch.inf) for width in widths)
        problem.bounds = LayerBounds(tuple(-bound for bound in above), above)
        return
    with problem.timed("bounds"):
        bound_root(problem)
        problem.drop_stable()


def shrink(problem: Problem) -> None:
    """Drop stable neurons, duplicate neurons and inputs that cannot matter."""
    with problem.timed("bounds"):
        problem.shrink()


def optimise_slopes(problem: Problem) -> Verdict | None:
    """Linear bounds with optimised slopes."""
    with problem.timed("bounds"):
        left = optimise(problem)
    if not left:
        return problem.verdict("unsat", "bounds")
    problem.only(left)
    return None


def bound_windows(problem: Problem) -> Verdict | None:
    """Joint bounds of neurons that read the same few inputs; a certificate cannot express them."""
    if problem.log.wanted or problem.settings.float32_semantics:
        return None
    numbers, query = problem.strategy.windows, problem.query
    with problem.timed("bounds"):
        budget = problem.budget.share(numbers.share)
        closed = closed_by_windows(query, problem.bounds, budget, numbers)
    left = [disjunct for disjunct in range(query.disjuncts) if disjunct not in closed]
    if not left:
        return problem.verdict("unsat", "bounds")
    if closed:
        problem.only(left)
    return None


def watch_time(problem: Problem) -> Verdict | None:
    """A timeout if time is up."""
    return problem.verdict("timeout", reason=TIME_IS_UP) if problem.budget.expired() else None


def leave_open(reason: str) -> Step[Problem]:
    """A step without a name that answers `unknown` with this reason."""
    return partial(Problem.verdict, status="unknown", reason=reason)


# Two sequences of steps that several engines share.
BEGIN = (read_property, attack_quickly, watch_time, bound_plainly, watch_time)
TIGHTEN = (shrink, attack_longer, watch_time, optimise_slopes, bound_windows, watch_time)
