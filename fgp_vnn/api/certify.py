"""Local robustness: `certify`, and `Certifier`, a network prepared for many inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from fgp_vnn.api.arrays import Given, read_classes, read_inputs, read_number
from fgp_vnn.api.models import Model, check_single, classes, open_model, space_of
from fgp_vnn.api.nearness import Nearness, read_near
from fgp_vnn.api.progress import counted
from fgp_vnn.base.errors import InputError, OutOfMemoryError, UnsupportedError, memory_errors
from fgp_vnn.base.radius import Radius
from fgp_vnn.base.results import Results
from fgp_vnn.base.robustness import Doubles, Robustness, RobustnessStatus
from fgp_vnn.base.verdict import Counterexample, Verdict
from fgp_vnn.base.words import suggestion
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.engine.classifier import Center, Classifier
from fgp_vnn.engine.device import pick_device, without_gradients
from fgp_vnn.engine.radius_ends import Ends, Progress
from fgp_vnn.engine.run import run
from fgp_vnn.engine.settings import GAP, make_settings, split_options, unusual
from fgp_vnn.network import LoadedNetwork, Network
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.inputs import row_space

_STATUSES: dict[str, RobustnessStatus] = {
    "unsat": "robust",
    "sat": "not_robust",
    "timeout": "timeout",
}
POINT_OPTIONS = ("y", "clip", "mask", "target", "timeout", "progress")


def certify(
    model: Model | Network | Certifier,
    x: ArrayLike,
    norm: Any = "l2",
    *,
    epsilon: Any,
    **options: Any,
) -> Robustness | list[Robustness]:
    """Decide whether the network gives all inputs within epsilon of x the same class as x.

    Returns one result for one input, and a list for a batch along the first axis. `epsilon` is a
    number, a string such as "8/255", or, for the linf norm, an array with one value per channel or
    per input. `norm` is "l2", "linf" or "l1" (or 2, inf, 1). Options, besides the fields of
    `Settings`:

    - `y`: the true class, or one for each input of a batch; default: the network's own prediction;
    - `clip`: a pair (low, high) of numbers or arrays; inputs outside of this box are ignored;
    - `mask`: True for the inputs that may change; the others keep their values;
    - `target`: one or several classes; only these count as a wrong class (default: all others);
    - `mean`, `std`: numbers, or one per channel; x and epsilon are then in units of pixels, and the
      network receives (pixel - mean) / std;
    - `timeout`: seconds for each input;
    - `progress`: a function called with the numbers of finished and of all inputs; False hides the
      progress bar.
    """
    for_points, settings = split_options(options, POINT_OPTIONS)
    certifier = Certifier.of(model, x, **settings)
    answer: Robustness | list[Robustness] = certifier.certify(
        x, norm, epsilon=epsilon, **for_points
    )
    return answer


@dataclass(frozen=True, eq=False, kw_only=True)
class Certifier(Classifier):
    """A network prepared once for `certify`, `radius` and `attack` at many inputs."""

    loaded: LoadedNetwork

    @property
    def note(self) -> str:
        """How the verified network differs from the given model; empty if it does not."""
        return self.loaded.note

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.loaded.input_shape

    @classmethod
    def of(cls, model: Model | Network | Certifier, x: Any = None, **options: Any) -> Certifier:
        """Prepare a model, in any form that `load_model` accepts, or a `Network`; a Certifier is
        returned unchanged.

        `x` is an example input; it fixes shapes that the model leaves open. A network with one
        output has two classes: 1 where the output is above 0 (above 1/2 after a sigmoid), else 0. A
        final softmax, sigmoid or tanh is dropped, since it does not change the order of the
        outputs. Options are the fields of `Settings`, and `mean` and `std` of a normalisation in
        front of the network.
        """
        if isinstance(model, Certifier):
            if options:
                raise InputError(f"a Certifier has its settings already: {', '.join(options)}")
            return model
        front, settings = split_options(options, ("mean", "std"))
        chosen = make_settings("certify", settings)
        loaded = open_model(model, x, **front)
        check_single(loaded)
        loaded = classes(loaded)
        network = loaded.network.to(pick_device(chosen.device, "float64"), torch.float64)
        space = row_space(network) if chosen.reduce and network.layers else None
        return cls(network, loaded.runtime.run, chosen, Strategy(), space, loaded=loaded)

    def __repr__(self) -> str:
        unusual_ones = "".join(f", {k}={v!r}" for k, v in unusual(vars(self.settings)).items())
        return f"Certifier({self.network!r}{unusual_ones})"

    def certify(self, x: ArrayLike, norm: Any = "l2", *, epsilon: Any, **options: Any) -> Any:
        """Decide whether all inputs within epsilon of x have the class of x. Returns a
        `Robustness`, or a list for a batch. Options are those of the function `certify`, except
        `mean`, `std` and settings."""
        points = self._points(x, (epsilon, norm), options)
        with points.counted() as add:
            for center, radius, budget in points:
                begin = time.perf_counter()
                wrong, statistics = self.wrong(center, radius), dict[str, int]()
                verdict = Verdict("sat", "class", wrong) if wrong else Verdict("unknown")
                problems = () if wrong else self.problems(center, radius, budget)
                try:
                    with memory_errors():
                        for problem in problems:
                            verdict = run(problem, "certify").after(statistics)
                            statistics = verdict.statistics
                            if verdict.status != "unknown":
                                break
                except OutOfMemoryError as error:
                    verdict = Verdict("unknown", reason=str(error), statistics=statistics)
                seconds = time.perf_counter() - begin
                add(self._robustness(center, verdict, seconds, points.given))
        return points.answer()

    def _robustness(
        self, center: Center, verdict: Verdict, seconds: float, given: Given
    ) -> Robustness:
        return Robustness(
            _STATUSES.get(verdict.status, "unknown"),
            center.label,
            given.answer(verdict.counterexample),
            verdict.decided_by,
            verdict.reason,
            seconds,
            verdict.statistics,
            self.note,
            given.back(center.x),
        )

    def radius(
        self,
        x: ArrayLike,
        norm: Any = "l2",
        *,
        maximum: float = 1.0,
        gap: float = GAP,
        progress: Progress | Literal[False] | None = None,
        **options: Any,
    ) -> Any:
        """Bound the distance from x to the nearest input of another class, up to `maximum`. Returns
        a `Radius`, or a list for a batch. Options are those of the function `radius`, except
        `mean`, `std` and settings.

        Stops when upper - lower <= gap * upper, when no counterexample is nearer than `maximum`, at
        the deadline, or when an allocation fails: both bounds are valid at any time.
        """
        maximum, gap = read_number(maximum, "maximum"), read_number(gap, "gap")
        self._check_radius(maximum, gap, options)
        told = progress or (lambda lower, upper: None)
        shown = None if progress is None else False
        points = self._points(x, (maximum, norm), {**options, "progress": shown})
        with points.counted() as add:
            for center, most, budget in points:
                begin = time.perf_counter()
                ends = Ends(self, center, most, gap, budget, told)
                if wrong := self.wrong(center, 0.0):
                    found = Radius(0.0, 0.0, center.label, wrong, "tight", "class")
                else:
                    try:
                        with memory_errors():
                            found = run(ends, "radius")
                    except OutOfMemoryError as error:
                        found = replace(ends.answer(""), ended="memory", reason=str(error))
                answer = replace(
                    found,
                    counterexample=points.given.answer(found.counterexample),
                    seconds=time.perf_counter() - begin,
                    note=self.note,
                    input=points.given.back(center.x),
                )
                add(answer)
        return points.answer()

    def _check_radius(self, maximum: float, gap: float, options: dict[str, Any]) -> None:
        """Refuse arguments and settings that `radius` does not support."""
        make_settings("radius", unusual(vars(self.settings)))
        if maximum <= 0:
            raise InputError(f"the maximum is {maximum}; it must be a positive number")
        if not 0 < gap < 1:
            raise InputError(f"the gap is {gap}; it must lie between 0 and 1")
        if self.settings.engine == "walk" and (smooth := self.network.smooth_names):
            raise UnsupportedError(f"the walk is for piecewise-linear networks; this has {smooth}")
        for name in ("mask", "target"):
            if options.get(name) is not None:
                raise InputError(f"a radius does not use {name}")

    def attack(self, x: ArrayLike, norm: Any = "l2", *, epsilon: Any, **options: Any) -> Any:
        """Run only the long attack. Returns a `Counterexample` within epsilon of x, or None if the
        attack finds none within its time and memory; for a batch, a list of these."""
        points = self._points(x, (epsilon, norm), options)
        with points.counted() as add:
            for center, radius, budget in points:
                found = None
                with suppress(OutOfMemoryError), memory_errors():
                    found = points.given.answer(self.descend(center, radius, budget))
                add(found)
        return points.answer()

    def _points(self, x: ArrayLike, ball: tuple[Any, Any], options: dict[str, Any]) -> _Points:
        """Read one input, or a batch along the first axis, and the options of `certify`."""
        timeout, y, shown = (options.pop(name, None) for name in ("timeout", "y", "progress"))
        epsilon, norm = ball
        for name in options.keys() - {"clip", "mask", "target"}:
            hint = suggestion(name, POINT_OPTIONS)
            raise InputError(f"there is no option {name!r} of a question about inputs{hint}")
        near = read_near(space_of(self.loaded), norm, **options)
        given = read_inputs(x, self.input_shape, self.network.inputs)
        seconds, classes = check_seconds(timeout), self.network.outputs
        labels = None if y is None else read_classes(y, len(given.points), classes)
        return _Points(self, given, near, epsilon, labels, seconds, shown)

    def label_of(self, x: Doubles) -> int:
        """The class that the network gives a flat input [inputs]."""
        y = self.run(x.astype(np.float32))
        if not np.isfinite(y).all():
            raise InputError("the network's output at the input is not finite")
        return int(y.argmax())

    def wrong(self, center: Center, radius: float) -> Counterexample | None:
        """The centre as a counterexample, if the network misclassifies it."""
        return self.judge(center, radius)(torch.from_numpy(center.x).unsqueeze(0))


@dataclass(frozen=True, eq=False)
class _Points:
    """The inputs of one call; iterates over (centre, radius, budget) and collects the answers."""

    certifier: Certifier
    given: Given
    near: Nearness
    epsilon: Any
    labels: list[int] | None  # None: the network's own predictions
    seconds: float | None  # for each input
    shown: Any  # the argument `progress` of `counted`
    answers: Results[Any] = field(init=False, default_factory=lambda: Results([]))

    def __iter__(self) -> Iterator[tuple[Center, float, Budget]]:
        for number, point in enumerate(self.given.points):
            budget = Budget.of(self.seconds, self.certifier.settings.memory)
            own = None if self.labels is None else self.labels[number]
            label = self.certifier.label_of(point) if own is None else own
            center, radius = self.near.at(point, label, self.epsilon)
            yield center, radius, budget

    @contextmanager
    def counted(self) -> Iterator[Callable[[Any], None]]:
        """Yield a function that records an answer and updates the progress display."""
        counting = counted(len(self.given.points), self.shown, self.given.single)
        with counting as done, without_gradients(self.certifier.network):

            def add(answer: Any) -> None:
                self.answers.append(answer)
                done()

            yield add

    def answer(self) -> Any:
        """The answer for one input, or the list of answers for a batch."""
        return self.answers[0] if self.given.single else self.answers
