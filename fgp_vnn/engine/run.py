"""A question taken through its steps, the cheapest first, until one gives the verdict."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import torch

from fgp_vnn.base.radius import Radius
from fgp_vnn.base.story import Stage, tell
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.engine.attack_only import AttackProblem, attack_program
from fgp_vnn.engine.engines import REGISTRY, Question
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.radius_ends import Ends
from fgp_vnn.engine.steps import Step, watch_time

Attack = Literal["attack only"]


@overload
def run(asked: Ends, question: Literal["radius"]) -> Radius: ...
@overload
def run(asked: Problem | AttackProblem, question: Question | Attack) -> Verdict: ...
def run(asked: Problem | AttackProblem | Ends, question: Question | Attack) -> Verdict | Radius:
    """Decide whether a point of a problem's domain meets its unsafe set, or, for a radius, bring
    the two ends together: the answer of the first step that gives one."""
    with torch.no_grad():
        for step in _steps(asked, question):
            _tell(step, asked)
            answer = step(asked)
            if answer is not None:
                status = answer.ended if isinstance(answer, Radius) else answer.status
                tell(Stage(status, left=_left(asked)), logging.INFO)
                return answer
    raise AssertionError("the last step of a question gives an answer")


def _steps(
    asked: Problem | AttackProblem | Ends, question: Question | Attack
) -> Sequence[Step[Any]]:
    """The steps of the engine that was chosen; a program that is not understood has one."""
    if question == "attack only":
        return (attack_program,)
    return REGISTRY[asked.settings.engine].steps()[question]


def _tell(step: Step[Any], asked: Problem | AttackProblem | Ends) -> None:
    """Say which step comes next, if it does anything."""
    name = getattr(step, "__name__", "").strip("<>").replace("_", " ")
    if name != "lambda" and step is not watch_time:
        tell(Stage(name, left=_left(asked)), logging.INFO)


def _left(asked: Problem | AttackProblem | Ends) -> float | None:
    left = asked.budget.left()
    return None if left == math.inf else left
