"""Runs the steps of a question, the cheapest first, until one gives the verdict."""

from __future__ import annotations

import logging
from typing import Literal, overload

import torch

from fgp_vnn.base.radius import Radius
from fgp_vnn.base.story import Stage, tell
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.engines import REGISTRY, Question
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.radius_ends import Ends
from fgp_vnn.engine.steps import watch_time


@overload
def run(subject: Ends, question: Literal["radius"]) -> Radius: ...
@overload
def run(subject: Problem, question: Question) -> Verdict: ...
def run(subject: Problem | Ends, question: Question) -> Verdict | Radius:
    """Decide whether a point of a problem's domain meets its unsafe set or, for a radius, narrow
    its two ends. Returns the answer of the chosen engine's first step that gives one."""
    with torch.no_grad():
        for step in REGISTRY[subject.settings.engine].steps()[question]:
            name = getattr(step, "__name__", "")
            if name and step is not watch_time:  # the others are not worth a message
                tell_stage(name.replace("_", " "), subject.budget)
            answer = step(subject)
            if answer is not None:
                said = answer.ended if isinstance(answer, Radius) else answer.status
                tell_stage(said, subject.budget)
                return answer
    raise AssertionError("the last step of a question gives an answer")


def tell_stage(name: str, budget: Budget) -> None:
    """Report the next step or the result, and the seconds left."""
    tell(Stage(name, left=budget.known_left()), logging.INFO)
