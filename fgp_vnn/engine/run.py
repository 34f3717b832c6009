"""A problem taken through the steps of a question, the cheapest first, until one decides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch

from fgp_vnn.base.verdict import Verdict
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.search_steps import forget_bounds, split, walk, walk_few, walk_first
from fgp_vnn.engine.steps import (
    Step,
    attack_longer,
    attack_quickly,
    bound,
    bound_for_walk,
    drop_stable,
    leave_open,
    optimise_slopes,
    read_property,
    shrink,
    watch_time,
)

Question = Literal["verify", "certify"]

_ATTACK = (
    read_property,
    attack_quickly,
    attack_longer,
    leave_open("the attack found nothing, and it proves nothing"),
)
_BEGIN = (read_property, attack_quickly, bound)
_TIGHTEN = (shrink, attack_longer, optimise_slopes, watch_time)
_OPEN = leave_open("linear bounds leave it open")
# What `certify` asks is mostly decided by bounds or a short walk: these come first.
_STEPS: Mapping[tuple[Question, str], Sequence[Step]] = {
    ("verify", "auto"): (*_BEGIN, *_TIGHTEN, walk_few, split),
    ("verify", "walk"): (*_BEGIN, *_TIGHTEN, walk),
    ("verify", "split"): (*_BEGIN, *_TIGHTEN, split),
    ("verify", "bounds"): (*_BEGIN, *_TIGHTEN, _OPEN),
    ("verify", "attack"): _ATTACK,
    ("certify", "auto"): (bound_for_walk, watch_time, attack_quickly, walk_first, *_TIGHTEN, split),
    ("certify", "walk"): (drop_stable, watch_time, walk),
    ("certify", "split"): (*_BEGIN, *_TIGHTEN, split),
    ("certify", "bounds"): (bound_for_walk, watch_time, _OPEN),
    ("certify", "attack"): _ATTACK,
}


def steps_of(question: Question, problem: Problem) -> Sequence[Step]:
    """The steps of a question under the settings of a problem."""
    if question == "certify" and not problem.settings.stable:
        return forget_bounds, walk
    return _STEPS[question, problem.settings.engine]


def run(problem: Problem, question: Question) -> Verdict:
    """Decide whether a point of the domain meets the unsafe set."""
    with torch.no_grad():
        for step in steps_of(question, problem):
            verdict = step(problem)
            if verdict is not None:
                return verdict
    raise AssertionError("the last step of a question gives a verdict")
