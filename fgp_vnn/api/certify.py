"""Local robustness of a network at its inputs: `certify`, and a network made ready for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike

from fgp_vnn.api.models import Model, check_single, load_model
from fgp_vnn.attack.ball_judge import check_ball
from fgp_vnn.base.errors import InputError, OutOfMemoryError, UnsupportedError, memory_errors
from fgp_vnn.base.radius import Ended, Radius
from fgp_vnn.base.robustness import Doubles, Floats, Norm, Robustness, RobustnessStatus
from fgp_vnn.base.verdict import Counterexample, Verdict
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.engine.classifier import Center, Classifier, Clip
from fgp_vnn.engine.device import pick_device
from fgp_vnn.engine.radius_ends import Ends, Progress
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import make_settings, unusual
from fgp_vnn.network import LoadedNetwork, Network
from fgp_vnn.network.model import Combination
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.inputs import row_space

Answer = TypeVar("Answer")
_STATUSES: dict[str, RobustnessStatus] = {
    "unsat": "robust",
    "sat": "not_robust",
    "timeout": "timeout",
}
_ENDS: dict[str, Ended] = {"unsat": "max", "sat": "gap", "timeout": "timeout"}


def certify(
    model: Model | Network | Certifier,
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
    certifier = Certifier.of(model, x, **settings)
    asked: dict[str, Any] = {"epsilon": epsilon, "norm": norm, "clip": clip, "timeout": timeout}
    return certifier.each(x, lambda point: certifier.certify(point, **asked))


@dataclass(frozen=True, eq=False, kw_only=True)
class Certifier(Classifier):
    """A network made ready for questions about many inputs."""

    input_shape: tuple[int, ...]
    note: str = ""  # how the network differs from the model that was given, if it does

    @classmethod
    def of(
        cls, model: Model | Network | Certifier, x: ArrayLike | None = None, **settings: Any
    ) -> Certifier:
        """From a model as `load_model` takes it, a network, or what was made of one before.

        `x` is an input, from which shapes are taken that the model leaves open. A network with one
        output has two classes: 1 where the output is above 0 (1/2 behind a sigmoid), else 0.
        """
        if isinstance(model, Certifier):
            if settings:
                raise InputError(f"a Certifier has its settings already: {', '.join(settings)}")
            return model
        chosen = make_settings("certify", settings)
        network, run, shape, loaded = _open(model, x)
        if network.outputs == 1:
            network, run = _two_classes(network, run, loaded.threshold if loaded else 0.0)
        network = network.to(pick_device(chosen.device, "float64"), torch.float64)
        note = loaded.note if loaded else ""
        space = row_space(network) if chosen.reduce and network.layers else None
        return cls(network, run, chosen, Strategy(), space, input_shape=shape, note=note)

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
        """A flat input [inputs] with the class that the network gives it."""
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
        """Whether all inputs within epsilon of x [inputs], and in the clip box, have its class;
        `timeout` is in seconds."""
        begin = time.perf_counter()
        budget = Budget.of(check_seconds(timeout), self.settings.memory)
        check_ball(x, epsilon, norm, clip)
        center = self.center(x, norm, clip)
        statistics: dict[str, int] = {}
        try:
            with memory_errors(), torch.inference_mode():
                for problem in self.problems(center, epsilon, budget):
                    verdict = run(problem, "certify").after(statistics)
                    statistics = verdict.statistics
                    if verdict.status != "unknown":
                        break
        except OutOfMemoryError as error:
            verdict = Verdict("unknown", reason=str(error), statistics=statistics)
        return Robustness(
            _STATUSES.get(verdict.status, "unknown"),
            center.label,
            verdict.counterexample,
            verdict.decided_by,
            verdict.reason,
            time.perf_counter() - begin,
            verdict.statistics,
            self.note,
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
        `timeout`, in seconds, is over or an allocation fails: both bounds are valid at any moment.
        """
        begin = time.perf_counter()
        budget = Budget.of(check_seconds(timeout), self.settings.memory)
        make_settings("radius", unusual(vars(self.settings)))
        if not 0 < maximum < math.inf:
            raise InputError(f"the maximum is {maximum}; it must be a positive number")
        if not 0 < gap < 1:
            raise InputError(f"the gap is {gap}; it must lie between 0 and 1")
        check_ball(x, maximum, norm, clip)
        if smooth := self.network.smooth:
            raise UnsupportedError(f"radii are for piecewise-linear networks; this has {smooth}")
        ends = Ends(self, self.center(x, norm, clip), maximum, gap, budget, progress)
        short = False
        try:
            with memory_errors(), torch.inference_mode():
                verdict = run(ends, "radius")
        except OutOfMemoryError as error:
            short, verdict = True, Verdict("unknown", "", ends.counterexample, str(error))
        return Radius(
            ends.lower,
            ends.upper,
            ends.center.label,
            verdict.counterexample,
            "memory" if short else _ENDS.get(verdict.status, "inconclusive"),
            verdict.decided_by,
            time.perf_counter() - begin,
            verdict.statistics,
            self.note,
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
        """A counterexample within epsilon of x [inputs], if a longer attack finds one in the time
        and memory that it has."""
        budget = Budget.of(check_seconds(timeout), self.settings.memory)
        try:
            with memory_errors(), torch.inference_mode():
                return self.descend(self.center(x, norm, clip), epsilon, budget)
        except OutOfMemoryError:
            return None


def _open(
    model: Model | Network, x: ArrayLike | None
) -> tuple[Network, Callable[[Floats], Floats], tuple[int, ...], LoadedNetwork | None]:
    """The normal form, what confirms counterexamples, the shape of the input, and all that
    is known of a model that was loaded."""
    if isinstance(model, Network):
        return model, _float_program(model), (model.inputs,), None
    loaded = load_model(model, x)
    check_single(loaded)
    return loaded.network, loaded.runtime.run, loaded.input_shape, loaded


def _two_classes(
    network: Network, run: Callable[[Floats], Floats], threshold: float
) -> tuple[Network, Callable[[Floats], Floats]]:
    """A network with one output y as one with two, the threshold and y."""
    bias = network.output.bias
    rows, offset = bias.new_tensor([[0.0], [1.0]]), bias.new_tensor([threshold, 0.0])
    first = np.full(1, threshold, dtype=np.float32)
    return (
        replace(network, output=Combination(network.output, rows, offset)),
        lambda x: np.concatenate([first, run(x)]),
    )


def _float_program(network: Network) -> Callable[[Floats], Floats]:
    """The network itself in float32, to confirm counterexamples where there is no other program."""
    single = network.to("cpu", torch.float32)

    def run(x: Floats) -> Floats:
        with torch.inference_mode():
            result: Floats = single(torch.from_numpy(x).unsqueeze(0))[0].numpy()
        return result

    return run
