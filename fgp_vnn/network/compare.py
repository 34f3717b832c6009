"""The last net below the reading of a file: the normal form against onnxruntime, at a few points.

Each map is compared on its own, at what onnxruntime gives it to read, with the error that float32
can make in it; then all of them together, with the errors that add up on the way. So nothing that
one operator computes, however large, hides what another one does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.errors import UnsupportedError
from fgp_vnn.network.model import Network
from fgp_vnn.network.roundings import LARGEST, UNIT, Loss
from fgp_vnn.network.runtime import Floats, Runtime

_SCALES = (1.0, 30.0, 1000.0)  # of inputs on either side of 0
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


def compare(reading: Reading, runtime: Runtime, inside: Mapping[str, Floats], x: Floats) -> None:
    """Refuse a network whose normal form does not compute at x what onnxruntime does.

    `inside` is what that has for some of the tensors inside, [points, entries] each.
    """
    network = reading.network
    result = torch.from_numpy(runtime.run_many(x)).double()
    if result.shape[1] != network.outputs:
        raise UnsupportedError(
            f"onnxruntime gives {result.shape[1]} outputs where {network.outputs} were expected"
        )
    points = torch.from_numpy(x).double()
    _check(reading, points, _numbered(reading, inside))
    _check(reading, points, {len(network.layers): result}, after=reading.softmax)


def _numbered(reading: Reading, inside: Mapping[str, Floats]) -> dict[int, Tensor]:
    """The tensors that maps end in, [points, outputs], by the numbers of these maps."""
    found = {}
    for k, (name, affine) in enumerate(zip(reading.ends, reading.network.maps, strict=True)):
        if name in inside:
            found[k] = torch.from_numpy(inside[name]).double()
            has = found[k].shape[1]
            if has != affine.outputs:
                raise UnsupportedError(
                    f"onnxruntime gives {name!r} {has} entries where {affine.outputs} were expected"
                )
    return found


def _check(
    reading: Reading, x: Tensor, seen: Mapping[int, Tensor], *, after: str | None = None
) -> None:
    """Compare what maps give with what was seen, and go on from the latter where there is any.

    A float32 program reads values that are off from ours by the errors of the maps before; what it
    computes of them is off by its own rounding. A ReLU does not make an error larger.
    """
    values, errors = [x], [torch.zeros_like(x)]  # [points, n_s] each
    sound = torch.ones(len(x), dtype=torch.bool)  # points at which nothing may have overflowed
    for k, (affine, loss) in enumerate(zip(reading.network.maps, reading.losses, strict=True)):
        read, off = ([part[s] for s in affine.sources] for part in (values, errors))
        z = affine(read)
        terms = affine.magnitude([v.abs() + e for v, e in zip(read, off, strict=True)])
        error = loss.error(terms) + 2 * affine.operations * torch.finfo(z.dtype).eps * terms
        if any(bool(e.any()) for e in off):
            error = error + affine.spread(off)
        sound = sound & (terms < LARGEST).all(1) & (error < LARGEST).all(1) & loss.bounded
        if k in seen:
            result, limit = _after(z, error, after)
            _refuse((result - seen[k]).abs()[sound], limit[sound], reading.ends[k])
            z, error = seen[k], torch.zeros_like(z)
        values.append(z.clamp(min=0))
        errors.append(torch.where(z + error < 0, torch.zeros_like(error), error))


def _refuse(off: Tensor, limit: Tensor, name: str) -> None:
    wrong = ~(off <= limit)
    if bool(wrong.any()):
        by, most = float(off[wrong][0]), float(limit[wrong][0])
        raise UnsupportedError(
            f"the network in normal form differs from what onnxruntime computes for {name!r} "
            f"(by {by:.3g}, where rounding explains {most:.3g})"
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
    return result, torch.expm1(factor) * result + torch.finfo(torch.float32).tiny
