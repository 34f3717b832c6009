"""Local robustness of a network at its inputs: `certify`, and a network made ready for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike

from fgp_vnn.attack.ball_judge import check_ball
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.radius import Ended, Radius
from fgp_vnn.base.robustness import Doubles, Floats, Norm, Robustness, RobustnessStatus
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.engine.classifier import Center, Classifier, Clip
from fgp_vnn.engine.device import pick_device
from fgp_vnn.engine.radius_ends import Ends, Progress
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import make_settings, unusual
from fgp_vnn.network import LoadedNetwork, Network, load_network
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.inputs import row_space

if TYPE_CHECKING:
    from torch.nn import Module

Answer = TypeVar("Answer")
_STATUSES: dict[str, RobustnessStatus] = {
    "unsat": "robust",
    "sat": "not_robust",
    "timeout": "timeout",
}
_ENDS: dict[str, Ended] = {"unsat": "max", "sat": "gap", "timeout": "timeout"}


def certify(
    model: str | Path | LoadedNetwork | Network | Module | Certifier,
    x: ArrayLike,
    *,
    epsilon: float,
    norm: Norm = "l2",
    clip: Clip | None = None,
    timeout: float | None = None,
    **settings: Any,
) -> Robustness | list[Robustness]:
    """Decide whether all inputs within epsilon of x, and in the clip box, have the class of x.

    One input gives one result, a batch along the first axis gives a list. `timeout` is in seconds
    for each input; settings are the fields of `Settings`.
    """
    certifier = Certifier.of(model, **settings)
    asked: dict[str, Any] = {"epsilon": epsilon, "norm": norm, "clip": clip, "timeout": timeout}
    return certifier.each(x, lambda point: certifier.certify(point, **asked))


@dataclass(frozen=True, eq=False, kw_only=True)
class Certifier(Classifier):
    """A network made ready for many inputs."""

    input_shape: tuple[int, ...]

    @classmethod
    def of(
        cls, model: str | Path | LoadedNetwork | Network | Module | Certifier, **settings: Any
    ) -> Certifier:
        """From an ONNX file, a loaded network or a torch module, or what was made of one before."""
        if isinstance(model, Certifier):
            if settings:
                raise InputError(f"a Certifier has its settings already: {', '.join(settings)}")
            return model
        chosen = make_settings("certify", settings)
        network, run, shape = _open(model)
        if network.outputs < 2:
            raise InputError(f"the network has {network.outputs} output; classes need two")
        network = network.to(pick_device(chosen.device, "float64"), torch.float64)
        space = row_space(network) if chosen.reduce and network.layers else None
        return cls(network, run, chosen, Strategy(), space, input_shape=shape)

    def points(self, x: ArrayLike) -> tuple[list[Doubles], bool]:
        """The inputs of an array, flat, and whether it was one input."""
        array = np.asarray(x.detach().cpu() if isinstance(x, torch.Tensor) else x)
        if array.dtype.kind not in "fiu":
            raise InputError(f"inputs must be numbers, not {array.dtype}")
        inputs = self.network.inputs
        shapes = ((inputs,), self.input_shape, self.input_shape[1:])
        if array.shape in shapes and array.size == inputs:
            return [array.reshape(-1).astype(np.float64)], True
        if array.ndim < 2 or array[0].size != inputs:
            raise InputError(
                f"inputs of shape {array.shape} do not fit a network with {inputs} inputs"
            )
        return list(array.reshape(len(array), -1).astype(np.float64)), False

    def each(self, x: ArrayLike, answer: Callable[[Doubles], Answer]) -> Answer | list[Answer]:
        """The answer about one input, or a list of answers about a batch along the first axis."""
        points, single = self.points(x)
        answers = [answer(point) for point in points]
        return answers[0] if single else answers

    def center(self, x: Doubles, norm: Norm, clip: Clip | None) -> Center:
        """A flat input with the class that the network gives it."""
        y = self.run(x.astype(np.float32))
        if not np.isfinite(y).all():
            raise InputError("the network's output at the input is not finite")
        return Center(x, int(y.argmax()), norm, clip)

    def certify(
        self,
        x: Doubles,
        *,
        epsilon: float,
        norm: Norm = "l2",
        clip: Clip | None = None,
        timeout: float | None = None,
    ) -> Robustness:
        """The robustness of the network at one flat input."""
        begin = time.perf_counter()
        budget = Budget.of(check_seconds(timeout), self.settings.memory)
        check_ball(x, epsilon, norm, clip)
        center = self.center(x, norm, clip)
        statistics: dict[str, int] = {}
        with torch.inference_mode():
            for problem in self.problems(center, epsilon, budget):
                verdict = run(problem, "certify").after(statistics)
                statistics = verdict.statistics
                if verdict.status != "unknown":
                    break
        return Robustness(
            _STATUSES.get(verdict.status, "unknown"),
            center.label,
            verdict.counterexample,
            verdict.decided_by,
            verdict.reason,
            time.perf_counter() - begin,
            verdict.statistics,
        )

    def radius(
        self,
        x: Doubles,
        *,
        norm: Norm = "l2",
        maximum: float = 1.0,
        gap: float = 0.01,
        clip: Clip | None = None,
        timeout: float | None = None,
        progress: Progress = lambda lower, upper: None,
    ) -> Radius:
        """Bounds of the distance from one flat input to the nearest one of another class, up to
        `maximum`; `progress` is called with both whenever one of them improves.

        Ends when upper - lower <= gap * upper, when nothing nearer than `maximum` is left, or when
        `timeout`, in seconds, is over: both bounds are valid at any moment.
        """
        begin = time.perf_counter()
        budget = Budget.of(check_seconds(timeout), self.settings.memory)
        make_settings("radius", unusual(vars(self.settings)))
        if not 0 < maximum < math.inf:
            raise InputError(f"the maximum is {maximum}; it must be a positive number")
        if not 0 < gap < 1:
            raise InputError(f"the gap is {gap}; it must lie between 0 and 1")
        check_ball(x, maximum, norm, clip)
        with torch.inference_mode():
            ends = Ends(self, self.center(x, norm, clip), maximum, gap, budget, progress)
            verdict = run(ends, "radius")
        return Radius(
            ends.lower,
            ends.upper,
            ends.center.label,
            verdict.counterexample,
            _ENDS.get(verdict.status, "inconclusive"),
            verdict.decided_by,
            time.perf_counter() - begin,
            verdict.statistics,
        )

    def attack(
        self,
        x: Doubles,
        *,
        epsilon: float,
        norm: Norm = "l2",
        clip: Clip | None = None,
        timeout: float | None = None,
    ) -> Counterexample | None:
        """A counterexample, if a longer attack finds one."""
        budget = Budget.of(check_seconds(timeout), self.settings.memory)
        with torch.inference_mode():
            return self.descend(self.center(x, norm, clip), epsilon, budget)


def _open(
    model: str | Path | LoadedNetwork | Network | Module,
) -> tuple[Network, Callable[[Floats], Floats], tuple[int, ...]]:
    """The normal form, the program that confirms witnesses, the shape of the input."""
    if isinstance(model, (str, Path)):
        model = load_network(Path(model))
    if isinstance(model, LoadedNetwork):
        return model.network, model.runtime.run, model.input_shape
    if isinstance(model, Network):
        return model, _float_program(model), (model.inputs,)
    if isinstance(model, torch.nn.Module):
        from fgp_vnn.network.onnx.module import load_module

        loaded = load_module(model)
        return loaded.network, loaded.runtime.run, loaded.input_shape
    raise InputError(f"a model is an ONNX path, a network or a torch module, not {type(model)}")


def _float_program(network: Network) -> Callable[[Floats], Floats]:
    """The network itself in float32: what confirms witnesses where there is no other program."""
    single = network.to("cpu", torch.float32)

    def run(x: Floats) -> Floats:
        with torch.inference_mode():
            result: Floats = single(torch.from_numpy(x).unsqueeze(0))[0].numpy()
        return result

    return run
