"""A question taken through its steps, the cheapest first, until one gives the verdict."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import torch

from fgp_vnn.base.radius import Radius
from fgp_vnn.base.story import Stage, tell
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.engine.attack_only import AttackProblem, attack_program
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.radius_ends import Ends
from fgp_vnn.engine.radius_search import bound_finely, bound_roughly, split_nearest, walk_nearest
from fgp_vnn.engine.radius_stages import attack_nearest
from fgp_vnn.engine.search_steps import split, walk, walk_few, walk_first
from fgp_vnn.engine.settings import ENGINES
from fgp_vnn.engine.steps import (
    Step,
    attack_longer,
    attack_quickly,
    bound_for_walk,
    bound_plainly,
    drop_stable,
    leave_open,
    optimise_slopes,
    read_property,
    shrink,
    watch_time,
)

Question = Literal["verify", "certify", "attack only"]

_ATTACK = (
    read_property,
    attack_quickly,
    attack_longer,
    leave_open("the attack found nothing, and it proves nothing"),
)
_BEGIN = (read_property, attack_quickly, bound_plainly)
_TIGHTEN = (shrink, attack_longer, optimise_slopes, watch_time)
_OPEN = leave_open("linear bounds leave it open")
_NEAREST = (attack_nearest, bound_roughly)
# What `certify` asks is mostly decided by bounds or a short walk: these come first.
_STEPS: Mapping[tuple[str, str], Sequence[Step[Any]]] = {
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
    ("radius", "auto"): (*_NEAREST, split_nearest),
    ("radius", "walk"): (*_NEAREST, walk_nearest),
    ("radius", "split"): (*_NEAREST, split_nearest),
    ("radius", "bounds"): (attack_nearest, bound_finely),
    **{("attack only", engine): (attack_program,) for engine in ENGINES},
}


@overload
def run(asked: Ends, question: Literal["radius"]) -> Radius: ...
@overload
def run(asked: Problem | AttackProblem, question: Question) -> Verdict: ...
def run(asked: Problem | AttackProblem | Ends, question: str) -> Verdict | Radius:
    """Decide whether a point of a problem's domain meets its unsafe set, or, for a radius, bring
    the two ends together: the answer of the first step that gives one."""
    steps = _STEPS[question, asked.settings.engine]
    with torch.no_grad():
        for step in steps:
            _tell(step, asked)
            answer = step(asked)
            if answer is not None:
                status = answer.ended if isinstance(answer, Radius) else answer.status
                tell(Stage(status, left=_left(asked)), logging.INFO)
                return answer
    raise AssertionError("the last step of a question gives an answer")


def _tell(step: Step[Any], asked: Problem | AttackProblem | Ends) -> None:
    """Say which step comes next."""
    name = getattr(step, "__name__", "").strip("<>").replace("_", " ")
    if name != "lambda":
        tell(Stage(name, left=_left(asked)), logging.INFO)


def _left(asked: Problem | AttackProblem | Ends) -> float | None:
    left = asked.budget.left()
    return None if left == math.inf else left
