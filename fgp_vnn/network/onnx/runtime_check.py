"""Final check of a loaded network: its normal form against onnxruntime, at a few points.

Each map is compared on its own, at the values that onnxruntime computes for its sources, up to the
error that float32 can make in it; then all maps together, up to the accumulated errors. So a large
result of one operator, whose rounding error is large, cannot hide a mistake in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.base.words import plural
from fgp_vnn.network.activations.base import RELU, Activation
from fgp_vnn.network.model import AffineMap, Network
from fgp_vnn.network.onnx.roundings import LARGEST, UNIT, Loss
from fgp_vnn.network.onnx.runtime import Floats, Program
from fgp_vnn.strategy import Loading

_SCALES = (1.0, 1000.0)  # of inputs on either side of 0
_EXPONENTIAL = 16  # roundings of an exponential and a logarithm


@dataclass(frozen=True, eq=False)
class Reading:
    """A normal form, and facts about the graph that it was made from."""

    network: Network
    ends: tuple[str, ...]  # the graph's tensor that each map computes
    losses: tuple[Loss, ...]  # the float32 error of each map
    softmax: str | None  # the operator that was removed from the end


def sample(inputs: int) -> Floats:
    """Inputs [points, inputs]: one like an image, in [0, 1], and others around and far from 0."""
    random = np.random.default_rng(0)
    around = [scale * (2 * random.random((1, inputs)) - 1) for scale in _SCALES]
    return np.concatenate([random.random((1, inputs)), *around]).astype(np.float32)


def exercise(
    run: Callable[[Floats], list[Floats]], hidden: Sequence[int], x: Floats, how: Loading
) -> tuple[Floats, list[Floats]]:
    """The points x [points, inputs] and more, and the results of `run` there, [points, entries].

    Points are added until enough entries of each of the `hidden` results, which activations read,
    have been on both sides of 0, for at most `how.turns` turns.
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
    """The share of z's entries [points, entries] that are > 0 at some point and < 0 at another."""
    return float(((z > 0).any(0) & (z < 0).any(0)).mean())


def _mixed(random: np.random.Generator, x: Floats, size: float) -> Floats:
    """Two points: one that takes each coordinate from one of two points of x, which may be corners
    of the property's box, and a random one of this size."""
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
    """Refuse a network whose normal form differs from onnxruntime at x by more than rounding.

    `inside` holds onnxruntime's values of some inner tensors, [points, entries] each. `watch` is
    called before each map.
    """
    network = reading.network
    result = torch.from_numpy(runtime.run_many(x)).double()
    if result.shape[1] != network.outputs:
        has = plural(result.shape[1], "output")
        raise UnsupportedError(f"onnxruntime gives {has}, the normal form {network.outputs}")
    seen = _numbered(reading, inside)
    at_once = max(1, how.entries // (network.inputs + network.neurons))
    for start in range(0, len(x), at_once):
        some = slice(start, start + at_once)
        here = {k: values[some] for k, values in seen.items()}
        _check(reading, torch.from_numpy(x[some]), here, result[some], watch)


def _numbered(reading: Reading, inside: Mapping[str, Floats]) -> dict[int, Tensor]:
    """The known values [points, outputs] of maps' results in onnxruntime, by map number."""
    found = {}
    for k, (name, affine) in enumerate(zip(reading.ends, reading.network.maps, strict=True)):
        if name in inside:
            found[k] = torch.from_numpy(inside[name])
            if (size := found[k].shape[1]) != affine.outputs:
                has = plural(size, "entry", "entries")
                raise UnsupportedError(f"onnxruntime gives {name!r} {has}, not {affine.outputs}")
    return found


def _check(
    reading: Reading,
    x: Tensor,
    inside: Mapping[int, Tensor],
    result: Tensor,
    watch: Callable[[], None],
) -> None:
    """Compare the maps' results with onnxruntime's inner tensors, and with its outputs.

    The first half of the rows reads onnxruntime's inner tensors, the second half our own results of
    the maps before. A float32 program reads values that differ from ours by the errors of earlier
    maps, and rounds what it computes from them. A ReLU does not enlarge an error; the error after
    another activation follows from the range of its values around z.
    """
    values = [torch.cat([x, x]).double()]  # [2 points, n_s] each
    errors = [torch.zeros_like(values[0])]
    sound = torch.ones(2 * len(x), dtype=torch.bool)  # rows in which nothing has overflowed
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

    How closely onnxruntime approximates smooth functions is not documented. The observed
    differences are at most 2^-22 (1 + |a|), for 17 functions at 100,000 points each; 2^-19 leaves
    room for other processors, and is far below the difference to any other function.
    """
    a = activation.value(z)
    if activation is RELU:
        return a, torch.where(z + error < 0, torch.zeros_like(error), error)
    envelope = activation.envelope(z - error, z + error)
    off = torch.maximum(envelope.greatest - a, a - envelope.least).clamp(min=0)
    return a, (off + 2.0**-19 * (1 + a.abs())).nan_to_num(torch.inf)


def _evaluated(
    affine: AffineMap, loss: Loss, values: Sequence[Tensor], errors: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """A map's results, the sums of their terms' sizes, and bounds on their float32 errors."""
    read = [values[s] for s in affine.sources]
    sizes = [torch.cat([values[s].abs() + errors[s], values[s].abs()]) for s in affine.sources]
    z = affine(read)
    terms, without = affine.magnitude(sizes).chunk(2)
    own = 4 * affine.operations * torch.finfo(z.dtype).eps * terms  # rounding of our own
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
    """The outputs after the softmax, whose exponents are off by up to twice the largest error."""
    if softmax is None:
        return y, error
    factor = 2 * error.amax(1, keepdim=True) + (y.shape[1] + _EXPONENTIAL) * UNIT
    if softmax == "LogSoftmax":
        result = y.log_softmax(1)
        return result, factor + _EXPONENTIAL * UNIT * (y.abs().amax(1, keepdim=True) + result.abs())
    result = y.softmax(1)
    error = torch.expm1(factor) * result + torch.finfo(torch.float32).tiny
    return result, error.nan_to_num(torch.inf)  # infinity times 0 is no bound
