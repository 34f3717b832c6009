"""Radii at any magnitude: both bounds are checked against points of another class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from hostile_cases import branches, magnitudes, spikes
from hostile_cases.networks import Redraw
from hostile_cases.oracle import Oracle
from hostile_cases.tool import Tool, command_options
from hostile_cases.trials import Trial

MAKERS = (magnitudes.make, branches.make, spikes.make)
ENGINES = ("auto", "walk", "bounds")


def attempt(random: np.random.Generator, tool: Tool, folder: Path) -> Iterator[Trial]:
    """Compute the radius in each norm with a random engine."""
    case = MAKERS[int(random.integers(len(MAKERS)))](random)
    if not case.balls:
        raise Redraw("there are no classes to tell apart")
    oracle, model = Oracle(case), folder / "model.onnx"
    model.write_bytes(case.network)
    for ball in case.balls:
        options = {"engine": str(random.choice(ENGINES))}
        farthest = replace(ball, epsilon=ball.epsilon * float(random.choice([1.0, 10.0])))
        if not np.isfinite(np.float32(farthest.epsilon)):
            farthest = ball
        answer = tool.radius(model, farthest, options)
        text = ",".join(repr(v) for v in ball.center)
        command = f"fgp-vnn radius model.onnx point.csv{command_options(options)} "
        command += f"--norm {ball.norm} --max {farthest.epsilon!r}"
        files = {"model.onnx": case.network, "point.csv": f"{text}\n".encode()}
        name = f"{options['engine']} {ball.norm}"
        yield Trial(name, answer.status, oracle.radius_fault(farthest, answer), command, files)
