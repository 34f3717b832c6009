"""Local robustness of a network at its inputs: `certify` and what it keeps between inputs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from fgp_vnn.attack.descent import falsify
from fgp_vnn.attack.robustness import BallJudge, Doubles, Floats, Norm, Robustness, check_ball
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.verdict import Counterexample, Verdict
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.domain.sets import Box, Clipped, Domain, L1Ball, L2Ball
from fgp_vnn.engine.decide import decide, lifted
from fgp_vnn.engine.device import pick_device
from fgp_vnn.engine.settings import Settings, make_settings
from fgp_vnn.engine.solve import LONG
from fgp_vnn.network import LoadedNetwork, Network, load_network
from fgp_vnn.network.model import AffineMap, Combination, Dense
from fgp_vnn.query import Query
from fgp_vnn.transform.inputs import RowSpace, row_space

if TYPE_CHECKING:
    from torch.nn import Module


def certify(
    model: str | Path | LoadedNetwork | Network | Module | Certifier,
    x: ArrayLike,
    *,
    epsilon: float,
    norm: Norm = "l2",
    clip: tuple[float, float] | None = None,
    timeout: float | None = None,
    **settings: Any,
) -> Robustness | list[Robustness]:
    """Decide whether all inputs within epsilon of x, and in the clip box, have the class of x.

    One input gives one result, a batch along the first axis gives a list. `timeout` is in seconds
    for each input; settings are the fields of `Settings`.
    """
    certifier = Certifier.of(model, **settings)
    points, single = certifier.points(x)
    results = [
        certifier.certify(point, epsilon=epsilon, norm=norm, clip=clip, timeout=timeout)
        for point in points
    ]
    return results[0] if single else results


@dataclass(frozen=True, eq=False)
class Certifier:
    """A network made ready: what depends on the network alone is computed once."""

    network: Network  # float64
    run: Callable[[Floats], Floats]  # the original program, [inputs] -> [outputs]
    input_shape: tuple[int, ...]
    settings: Settings
    space: RowSpace | None  # of the input, for l2 balls
    _outputs: dict[int, AffineMap] = field(default_factory=dict)  # margins of each class

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
        return cls(network, run, shape, chosen, space)

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

    def certify(
        self,
        x: Doubles,
        *,
        epsilon: float,
        norm: Norm = "l2",
        clip: tuple[float, float] | None = None,
        timeout: float | None = None,
    ) -> Robustness:
        """The robustness of the network at one flat input."""
        begin = time.perf_counter()
        budget = Budget.of(check_seconds(timeout), self.settings.memory)
        check_ball(x, epsilon, norm, clip)
        y = self.run(x.astype(np.float32))
        if not np.isfinite(y).all():
            raise InputError("the network's output at the input is not finite")
        label = int(y.argmax())
        judge = self.judge(x, epsilon, norm, clip, label)
        with torch.inference_mode():
            verdict = self._decide(x, epsilon, norm, clip, label, judge, budget)
        names: dict[str, Literal["robust", "not_robust", "unknown", "timeout"]] = {
            "unsat": "robust",
            "sat": "not_robust",
            "timeout": "timeout",
        }
        return Robustness(
            names.get(verdict.status, "unknown"),
            label,
            verdict.counterexample,
            verdict.decided_by,
            verdict.reason,
            time.perf_counter() - begin,
            verdict.statistics,
        )

    def _decide(
        self,
        x: Doubles,
        epsilon: float,
        norm: Norm,
        clip: tuple[float, float] | None,
        label: int,
        judge: BallJudge,
        budget: Budget,
    ) -> Verdict:
        """The ball in its row space first, then, where a clip box matters, both sets."""
        query = self.query(ball(x, epsilon, norm, None, self.network.device), label)
        whole = query.domain
        if self.space is None or not isinstance(whole, L2Ball):
            clipped = ball(x, epsilon, norm, clip, self.network.device)
            return decide(replace(query, domain=clipped), judge, self.settings, budget)
        small, lift = self.space.restrict(query, whole)
        # In the whole ball an LP finds points that the clip box shuts out.
        settings = replace(self.settings, lp=self.settings.lp and clip is None)
        first = decide(small, lifted(lift, judge), settings, budget)
        if clip is None or first.status != "unknown":
            return first
        clipped = ball(x, epsilon, norm, clip, self.network.device)
        verdict = decide(replace(query, domain=clipped), judge, self.settings, budget)
        return verdict.after(first.statistics)

    def attack(
        self,
        x: Doubles,
        *,
        epsilon: float,
        norm: Norm = "l2",
        clip: tuple[float, float] | None = None,
        timeout: float | None = None,
    ) -> Counterexample | None:
        """A witness, if a longer attack finds one."""
        label = int(self.run(x.astype(np.float32)).argmax())
        budget = Budget.of(check_seconds(timeout), self.settings.memory)
        with torch.inference_mode():
            return self.descend(x, epsilon, norm, clip, label, budget)

    def descend(
        self,
        x: Doubles,
        epsilon: float,
        norm: Norm,
        clip: tuple[float, float] | None,
        label: int,
        budget: Budget,
    ) -> Counterexample | None:
        """The same for an input whose class is known, within a budget."""
        confirm: Confirm = self.judge(x, epsilon, norm, clip, label)
        query = self.query(ball(x, epsilon, norm, clip, self.network.device), label)
        if self.space is not None and isinstance(query.domain, L2Ball):
            query, lift = self.space.restrict(query, query.domain)
            confirm = lifted(lift, confirm)
        return falsify(query, confirm, budget, replace(LONG, seed=self.settings.seed))

    def query(self, domain: Domain, label: int) -> Query:
        """Can another class reach the label's output in the domain?"""
        others = self.network.outputs - 1
        device = self.network.device
        if label not in self._outputs:
            self._outputs[label] = margins(self.network.output, label)
        return Query(
            replace(self.network, output=self._outputs[label]),
            domain,
            torch.arange(others, device=device),
            torch.zeros(others, dtype=torch.bool, device=device),
            others,
        )

    def judge(
        self,
        x: Doubles,
        epsilon: float,
        norm: Norm,
        clip: tuple[float, float] | None,
        label: int,
    ) -> BallJudge:
        low, high = (-math.inf, math.inf) if clip is None else clip
        lower, upper = np.maximum(x - epsilon, low), np.minimum(x + epsilon, high)
        return BallJudge(x, epsilon, norm, lower, upper, self.run, label)


def margins(output: AffineMap, label: int) -> AffineMap:
    """y_label - y_j for all other classes j."""
    count = output.outputs
    eye = torch.eye(count, dtype=output.bias.dtype, device=output.bias.device)
    others = [j for j in range(count) if j != label]
    rows = eye[label] - eye[others]
    if not isinstance(output, Dense) or output.terms is not None or output.defect is not None:
        return Combination(output, rows, torch.zeros_like(rows[:, 0]))
    weights = tuple(rows @ weight for weight in output.weights)
    sizes = tuple(rows.abs() @ weight.abs() for weight in output.weights)
    terms = (*sizes, rows.abs() @ output.bias.abs())
    return Dense(output.sources, weights, rows @ output.bias, terms=terms)


def ball(
    x: Doubles,
    epsilon: float,
    norm: Norm,
    clip: tuple[float, float] | None,
    device: torch.device,
) -> Domain:
    """The inputs within epsilon of x, and in the clip box; a box is rounded outwards."""
    center = torch.from_numpy(x).to(device)
    if norm == "linf":
        lower, upper = np.nextafter(x - epsilon, -np.inf), np.nextafter(x + epsilon, np.inf)
        if clip is not None:
            lower, upper = np.maximum(lower, clip[0]), np.minimum(upper, clip[1])
        return Box(torch.from_numpy(lower).to(device), torch.from_numpy(upper).to(device))
    kind: type[L2Ball] | type[L1Ball] = L2Ball if norm == "l2" else L1Ball
    whole = kind(center, float(epsilon))
    if clip is None:
        return whole
    low, high = (torch.full_like(center, bound) for bound in clip)
    return Clipped(whole, Box(low, high))


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
