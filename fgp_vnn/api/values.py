"""Certified ranges of outputs and hidden neurons, and the greatest value of an objective."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fgp_vnn.api.arrays import read_number
from fgp_vnn.api.models import open_model, with_softmax
from fgp_vnn.api.sets import InputSet, example_of, read_sets
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.ranges import Bounds, Maximum, Stopped
from fgp_vnn.base.robustness import Doubles
from fgp_vnn.base.verdict import summed
from fgp_vnn.base.words import plural
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.engine.device import pick_device, without_gradients
from fgp_vnn.engine.settings import Settings, make_settings, split_options
from fgp_vnn.engine.values import METHODS, Lows, ValueRows, find_lows, least_at
from fgp_vnn.network import LoadedNetwork, Network
from fgp_vnn.property.expressions import Expression
from fgp_vnn.property.numbers import exact_numbers
from fgp_vnn.strategy import Strategy

Progress = Callable[[Any, Any], None]
_GAP = 1e-4  # of bounds, if none is given


def bounds(
    model: Any,
    inputs: Any,
    *,
    layer: int | None = None,
    method: str = "split",
    gap: float = _GAP,
    **options: Any,
) -> Bounds:
    """Certified lower and upper bounds on the outputs over a set of inputs, or on the
    pre-activation values of activation layer `layer` (counted from 0).

    `inputs` is a condition on the variables x of the model, a pair (lower, upper), a `Ball`, or a
    `Property`, of which only the inputs are used. `method` is "plain" for linear bounds,
    "optimised" for linear bounds with optimised slopes, or "split" for branch and bound. The split
    search stops when each bound is within gap * max(1, |value|) of the value at some input, or when
    only rounding separates the two. Options are `timeout` in seconds, `progress` (a function called
    with the current lower and upper bounds), `mean`, `std`, and `device`, `memory` and `seed` of
    `Settings`. The bounds are valid whenever the search stops.
    """
    question = _Question.of(model, inputs, options, method, gap, outputs=layer is None)
    network = question.loaded.network
    target = _layer(layer, len(network.layers))
    count = network.maps[target].outputs
    unit = torch.eye(count, dtype=torch.float64, device=network.device)
    rows = ValueRows(network, target, torch.cat([unit, -unit]))
    shape = question.loaded.output_shape if layer is None else (count,)
    shape = shape if math.prod(shape) == count else (count,)

    def ends(least: Tensor) -> tuple[Doubles, Doubles]:
        low, high = (part.cpu().numpy().reshape(shape) for part in least.chunk(2))
        return low + 0.0, -high + 0.0

    def hear(least: Tensor, reached: Tensor) -> None:
        question.progress(*ends(least))

    parts = [part for part, _ in question.lows(rows, inputs, hear)]
    least = torch.stack([part.least for part in parts]).amin(0)
    reached = torch.stack([part.reached for part in parts]).amin(0)
    lower, upper = ends(least)
    near = reached - least <= question.gap * reached.abs().clamp(min=1)
    close = bool((near & reached.isfinite()).all())
    return Bounds(
        lower,
        upper,
        *ends(reached),
        method,
        question.ended(close, parts),
        question.seconds(),
        summed([part.statistics for part in parts]),
        question.loaded.note,
    )


def maximise(
    model: Any, inputs: Any, objective: Any, *, gap: float = 1e-4, **options: Any
) -> Maximum:
    """Proved lower and upper bounds on the maximum of an objective over a set of inputs.

    `objective` is a linear expression in the outputs y of the model, or an array with one
    coefficient per output; `inputs` and options are as for `bounds`. The search stops when the two
    bounds differ by at most gap * max(1, |value|), when rounding prevents that, or at the deadline:
    both bounds are valid at any time.
    """
    question = _Question.of(model, inputs, options, "split", gap)
    network = question.loaded.network
    factors, constant = _objective(objective, network)
    row = torch.from_numpy(factors).to(network.device).unsqueeze(0)
    rows = ValueRows(network, len(network.layers), -row)

    def above(least: float) -> float:
        return _up(-Fraction(least), constant) if math.isfinite(least) else math.inf

    def hear(least: Tensor, reached: Tensor) -> None:
        question.progress(-float(reached) + float(constant), above(float(least)))

    best, parts = None, []
    for part, where in question.lows(rows, inputs, hear):
        parts.append(part)
        x = where.inside(part.points[0].cpu().numpy())
        if x is None:  # the ball has no float32 point nearby: try its centre
            x = where.inside(where.domain.center.numpy())
        if x is None:
            continue
        there = ValueRows(network, rows.target, row)
        # The value at one point needs no search: compute it even after the deadline.
        budget = Budget.of(None, question.settings.memory)
        value = float(least_at(there, torch.from_numpy(x), question.settings, budget))
        if best is None or value > best[0]:
            best = value, x
    if best is None:
        raise InputError("the set of inputs holds no float32 value that could be found")
    value = -_up(-Fraction(best[0]), -constant) if math.isfinite(best[0]) else -math.inf
    upper = above(min(float(part.least) for part in parts))
    single = best[1].astype(np.float32)
    y = question.loaded.runtime.run(single).reshape(question.loaded.output_shape)
    close = math.isfinite(value) and upper - value <= question.gap * max(1.0, abs(value))
    ended = question.ended(close, parts)
    point = single.reshape(question.loaded.input_shape)
    return Maximum(
        value,
        upper,
        point,
        y,
        ended,
        question.seconds(),
        summed([part.statistics for part in parts]),
        question.loaded.note,
    )


@dataclass(frozen=True, eq=False)
class _Question:
    """The common part of `bounds` and `maximise`: network, budget and settings."""

    loaded: LoadedNetwork  # on the device of the search
    method: str
    gap: float
    budget: Budget
    settings: Settings
    progress: Progress
    begin: float

    @classmethod
    def of(
        cls,
        model: Any,
        inputs: Any,
        options: dict[str, Any],
        method: str,
        gap: float,
        *,
        outputs: bool = True,
    ) -> _Question:
        """Read the user's arguments; with `outputs`, a final softmax is part of the network."""
        begin = time.perf_counter()
        if method not in METHODS:
            raise InputError(f"method is {method!r}; it must be one of {', '.join(METHODS)}")
        gap = read_number(gap, "gap")
        if gap <= 0:
            raise InputError(f"the gap is {gap}; it must be a positive number")
        if method != "split" and gap != _GAP:
            raise InputError("gap is used only by the method 'split'")
        front, rest = split_options(options, ("mean", "std"))
        limits, chosen = split_options(rest, ("timeout", "progress"))
        settings = make_settings("bounds", chosen)
        budget = Budget.of(check_seconds(limits.get("timeout")), settings.memory)
        shape = example_of(inputs) if isinstance(model, torch.nn.Module) else None
        loaded = open_model(model, shape, **front)
        loaded = with_softmax(loaded) if outputs else loaded
        most, neurons = Strategy().slopes.intervals_first, loaded.network.neurons
        if neurons >= most and (smooth := loaded.network.smooth_names):
            raise UnsupportedError(
                f"bounds of networks with {smooth} are for fewer than {most:,} neurons; this has "
                f"{neurons:,}"
            )
        network = loaded.network.to(pick_device(settings.device, "float64"), torch.float64)
        loaded = replace(loaded, network=network)
        heard = limits.get("progress") or (lambda *ends: None)
        return cls(loaded, method, gap, budget, settings, heard, begin)

    def lows(
        self, rows: ValueRows, inputs: Any, hear: Callable[[Tensor, Tensor], None]
    ) -> list[tuple[Lows, InputSet]]:
        """Lower bounds for each of the sets of inputs, with a share of the time for each."""
        sets, found = read_sets(inputs, self.loaded), []
        device = self.loaded.network.device
        # The other half of the gap is for the change of a value when its point becomes float32.
        gap = self.gap / 2
        for number, one in enumerate(sets):
            left = len(sets) - number
            budget = self.budget if left == 1 else self.budget.share(1 / left)
            domain = one.domain.to(device, torch.float64)
            with without_gradients(self.loaded.network):
                lows = find_lows(rows, domain, self.method, gap, budget, self.settings, hear)  # type: ignore[arg-type]
            found.append((lows, one))
        return found

    def ended(self, close: bool, parts: list[Lows]) -> Stopped:
        if close:
            return "tight"
        if self.method != "split":
            return "method"
        if all(bool(part.closed.all()) for part in parts):
            return "rounding"
        return "timeout" if self.budget.expired() else "inconclusive"

    def seconds(self) -> float:
        return time.perf_counter() - self.begin


def _layer(layer: int | None, layers: int) -> int:
    """The index of the affine map to bound: the output map if `layer` is None."""
    if layer is None:
        return layers
    if not isinstance(layer, int) or not 0 <= layer < layers:
        raise InputError(f"layer is {layer!r}; the network has activation layers 0 to {layers - 1}")
    return layer


def _objective(objective: Any, network: Network) -> tuple[Doubles, Fraction]:
    """The coefficients [outputs] of the objective, exact in float64, and its constant."""
    outputs, inputs = network.outputs, network.inputs
    if not isinstance(objective, Expression):
        factors = exact_numbers(objective).reshape(-1)
        if len(factors) != outputs:
            has = f"the objective has {plural(len(factors), 'factor')}"
            raise InputError(f"{has} for {plural(outputs, 'output')}")
        return _doubles(list(factors)), Fraction(0)
    if objective.size != 1:
        raise InputError("the objective is one expression, not several")
    only = objective.flatten().entries.item()
    names = objective.space.names
    if (names.inputs, names.outputs) != (inputs, outputs):
        raise InputError("the objective is about another network")
    terms = only.without_zeros()
    if any(variable < inputs for variable in terms):
        raise InputError("the objective is about outputs; inputs are not supported in it")
    return _doubles([terms.get(inputs + j, Fraction(0)) for j in range(outputs)]), only.constant


def _doubles(factors: list[Fraction]) -> NDArray[np.float64]:
    values = [float(factor) for factor in factors]
    if any(Fraction(v) != f for v, f in zip(values, factors, strict=True)):
        raise InputError("a factor of the objective is not a float64: scale the objective")
    return np.array(values)


def _up(value: Fraction, constant: Fraction) -> float:
    """The sum, rounded up to float64."""
    total = value + constant
    nearest = float(total)
    return nearest if Fraction(nearest) >= total else math.nextafter(nearest, math.inf)
