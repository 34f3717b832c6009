"""A question taken through its steps, the cheapest first, until one gives the verdict."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Literal

import torch

from fgp_vnn.base.story import Stage, tell
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.engine.engines import REGISTRY
from fgp_vnn.engine.opaque import OpaqueProblem, attack_program
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.radius_ends import Ends
from fgp_vnn.engine.search_steps import forget_bounds, walk
from fgp_vnn.engine.steps import Step

Question = Literal["verify", "certify", "radius", "opaque"]


def run(asked: Problem | OpaqueProblem | Ends, question: Question) -> Verdict:
    """Decide whether a point of a problem's domain meets its unsafe set, or, for a radius, bring
    the two ends together: the verdict of the first step that gives one."""
    with torch.no_grad():
        for step in _steps(asked, question):
            _tell(step, asked)
            verdict = step(asked)
            if verdict is not None:
                tell(Stage(verdict.status, left=_left(asked)), logging.INFO)
                return verdict
    raise AssertionError("the last step of a question gives a verdict")


def _steps(asked: Problem | OpaqueProblem | Ends, question: Question) -> Sequence[Step[Any]]:
    """The steps of the engine that was chosen; a program that is not understood has one."""
    if question == "opaque":
        return (attack_program,)
    if question == "certify" and not asked.settings.stable:
        return forget_bounds, walk
    return REGISTRY[asked.settings.engine].steps()[question]


def _tell(step: Step[Any], asked: Problem | OpaqueProblem | Ends) -> None:
    """Say which step comes next."""
    name = getattr(step, "__name__", "").strip("<>").replace("_", " ")
    if name != "lambda":
        tell(Stage(name, left=_left(asked)), logging.INFO)


def _left(asked: Problem | OpaqueProblem | Ends) -> float | None:
    left = asked.budget.left()
    return None if left == math.inf else left
