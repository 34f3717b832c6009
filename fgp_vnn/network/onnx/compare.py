"""Final check of a loaded network: its normal form against onnxruntime, at a few points.

Each map is compared on its own, at what onnxruntime gives it to read, with the error that float32
can make in it; then all of them together, with the errors that add up on the way. So nothing that
one operator computes, however large, hides what another one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.activations.base import RELU, Activation
from fgp_vnn.network.model import AffineMap, Network
from fgp_vnn.network.onnx.roundings import LARGEST, UNIT, Loss
from fgp_vnn.network.onnx.runtime import Floats, Program
from fgp_vnn.strategy import Loading

_SCALES = (1.0, 1000.0)  # of inputs on either side of 0
_EXPONENTIAL = 16  # roundings of an exponential and a logarithm


@dataclass(frozen=True, eq=False)
class Reading:
    """A normal form, and what is known of the graph that it was made of."""

    network: Network
    ends: tuple[str, ...]  # the graph's tensor that each map ends in
    losses: tuple[Loss, ...]  # what float32 may lose in each map
    softmax: str | None  # the operator that was cut off the end


def sample(inputs: int) -> Floats:
    """Inputs [points, inputs] like images, and others that reach what lies far from 0."""
    random = np.random.default_rng(0)
    around = [scale * (2 * random.random((1, inputs)) - 1) for scale in _SCALES]
    return np.concatenate([random.random((1, inputs)), *around]).astype(np.float32)


def exercise(
    run: Callable[[Floats], list[Floats]], hidden: Sequence[int], x: Floats, how: Loading
) -> tuple[Floats, list[Floats]]:
    """The points x [points, inputs] and more, and what `run` gives at them, [points, entries] each.

    Points are added until enough entries of each of the `hidden` results, which ReLUs read, have
    been on both sides of 0.
    """
    values, random = run(x), np.random.default_rng(1)
    for turn in range(how.turns):
        if all(_on_both_sides(values[k]) >= how.both for k in hidden):
            break
        more = _mixed(random, x, _SCALES[-1] * 10**turn) if turn else -x[1:3]
        values = [np.concatenate(pair) for pair in zip(values, run(more), strict=True)]
        x = np.concatenate([x, more])
    return x, values


def _on_both_sides(z: Floats) -> float:
    """The share of the entries of z [points, entries] that are above 0 once, and below it once."""
    return float(((z > 0).any(0) & (z < 0).any(0)).mean())


def _mixed(random: np.random.Generator, x: Floats, size: float) -> Floats:
    """Two points: one whose coordinates come from two points of x, such as corners of a box that is
    asked about, and a random one of this size."""
    first, second = x[random.integers(len(x), size=2)]
    mixed = np.where(random.random(x.shape[1]) < 0.5, first, second)
    return np.stack([mixed, size * random.normal(size=x.shape[1])]).astype(np.float32)


def check_against_runtime(
    reading: Reading,
    runtime: Program,
    inside: Mapping[str, Floats],
    x: Floats,
    how: Loading,
    watch: Callable[[], None] = lambda: None,
) -> None:
    """Refuse a network whose normal form does not compute at x what onnxruntime does.

    `inside` is what that has for some of the tensors inside, [points, entries] each. `watch` is
    called before each map.
    """
    network = reading.network
    result = torch.from_numpy(runtime.run_many(x)).double()
    if result.shape[1] != network.outputs:
        raise UnsupportedError(
            f"onnxruntime gives {result.shape[1]} outputs where {network.outputs} were expected"
        )
    seen = _numbered(reading, inside)
    at_once = max(1, how.entries // (network.inputs + network.neurons))
    for start in range(0, len(x), at_once):
        some = slice(start, start + at_once)
        here = {k: values[some] for k, values in seen.items()}
        _check(reading, torch.from_numpy(x[some]), here, result[some], watch)


def _numbered(reading: Reading, inside: Mapping[str, Floats]) -> dict[int, Tensor]:
    """The tensors that maps end in, [points, outputs], by the numbers of these maps."""
    found = {}
    for k, (name, affine) in enumerate(zip(reading.ends, reading.network.maps, strict=True)):
        if name in inside:
            found[k] = torch.from_numpy(inside[name])
            has = found[k].shape[1]
            if has != affine.outputs:
                raise UnsupportedError(
                    f"onnxruntime gives {name!r} {has} entries where {affine.outputs} were expected"
                )
    return found


def _check(
    reading: Reading,
    x: Tensor,
    inside: Mapping[int, Tensor],
    result: Tensor,
    watch: Callable[[], None],
) -> None:
    """Compare what the maps give with what was seen inside, and with the result.

    The first rows read what was seen, the second ones what the maps before them gave. A float32
    program reads values that are off from ours by the errors of the maps before, and rounds what it
    computes of them. A ReLU does not make an error larger; what another activation makes of it is
    the range of its values around z.
    """
    values = [torch.cat([x, x]).double()]  # [2 points, n_s] each
    errors = [torch.zeros_like(values[0])]
    sound = torch.ones(2 * len(x), dtype=torch.bool)  # nothing may have overflowed before
    first, second = slice(len(x)), slice(len(x), None)
    activations = (*reading.network.activations, RELU)
    for k, (affine, loss) in enumerate(zip(reading.network.maps, reading.losses, strict=True)):
        watch()
        z, terms, error = _evaluated(affine, loss, values, errors)
        sound = sound & (terms < LARGEST).all(1) & (error < LARGEST).all(1) & loss.bounded
        if k in inside:
            seen = inside[k].double()
            sound = sound & seen.isfinite().all(1).repeat(2)
            _refuse(z[first], seen, error[first], sound[first], reading.ends[k])
            z = torch.cat([seen, z[second]])
            error = torch.cat([torch.zeros_like(seen), error[second]])
        a, off = _activated(activations[k], z, error)
        sound = sound & (a.abs() < LARGEST).all(1) & (off < LARGEST).all(1)
        values.append(a)
        errors.append(off)
    y, error = _after(z[second], error[second], reading.softmax)
    _refuse(y, result, error, sound[second], "the output")


def _activated(activation: Activation, z: Tensor, error: Tensor) -> tuple[Tensor, Tensor]:
    """Values of an activation, and a bound on the float32 error if z is off by a given error.

    How well onnxruntime's own approximations of smooth functions agree with these is not
    documented. Seen were differences of at most 2^-22 (1 + |a|), for 17 functions at 100,000 points
    each; 2^-19 leaves room for other processors, and is far less than what another function has.
    """
    a = activation.value(z)
    if activation is RELU:
        return a, torch.where(z + error < 0, torch.zeros_like(error), error)
    fan = activation.fan(z - error, z + error)
    off = torch.maximum(fan.greatest - a, a - fan.least).clamp(min=0)
    return a, (off + 2.0**-19 * (1 + a.abs())).nan_to_num(torch.inf)


def _evaluated(
    affine: AffineMap, loss: Loss, values: Sequence[Tensor], errors: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """A map's results, the sums of their terms' sizes, and how far float32 may be from them."""
    read = [values[s] for s in affine.sources]
    sizes = [torch.cat([values[s].abs() + errors[s], values[s].abs()]) for s in affine.sources]
    z = affine(read)
    terms, without = affine.magnitude(sizes).chunk(2)
    own = 4 * affine.operations * torch.finfo(z.dtype).eps * terms  # of this computation
    return (
        z,
        terms,
        loss.error(terms, affine.operations, 0.0) + (terms - without).clamp(min=0) + own,
    )


def _refuse(ours: Tensor, seen: Tensor, error: Tensor, sound: Tensor, name: str) -> None:
    off, most = (ours - seen).abs()[sound], error[sound]
    wrong = ~(off <= most)
    if bool(wrong.any()):
        raise UnsupportedError(
            f"the network in normal form differs from what onnxruntime computes for {name} "
            f"(by {float(off[wrong][0]):.3g}; rounding explains {float(most[wrong][0]):.3g})"
        )


def _after(y: Tensor, error: Tensor, softmax: str | None) -> tuple[Tensor, Tensor]:
    """The outputs behind a softmax, whose exponents are off by up to twice the largest error."""
    if softmax is None:
        return y, error
    factor = 2 * error.amax(1, keepdim=True) + (y.shape[1] + _EXPONENTIAL) * UNIT
    if softmax == "LogSoftmax":
        result = y.log_softmax(1)
        return result, factor + _EXPONENTIAL * UNIT * (y.abs().amax(1, keepdim=True) + result.abs())
    result = y.softmax(1)
    error = torch.expm1(factor) * result + torch.finfo(torch.float32).tiny
    return result, error.nan_to_num(torch.inf)  # an infinite factor of 0 bounds nothing
