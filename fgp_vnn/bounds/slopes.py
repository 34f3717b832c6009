"""Slopes and multipliers of linear bounds, chosen by gradient ascent.

A bound is the least value of a linear function over the domain. By the envelope theorem its
derivatives need only the minimiser x*, carried forward through the lines that the backward pass
chose: with z the value that arrives at a neuron and A the coefficient of its output,
d bound / d alpha = max(A, 0) * z and d bound / d beta = -s * z. No graph is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.bounds.backward import Backward, LayerBounds, Lines, Rounding, backward
from fgp_vnn.bounds.lines import push, rise
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.model import Network
from fgp_vnn.strategy import Ascent


class Multipliers(NamedTuple):
    """Slopes of open neurons and multipliers of closed ones, [batch, rows, n_k] per layer."""

    alpha: tuple[Tensor, ...]  # in [0, 1]
    beta: tuple[Tensor, ...]  # nonnegative
    weights: Tensor | None = None  # [batch, m] nonnegative, of rows that are bounded as one sum

    def to(self, dtype: torch.dtype) -> Multipliers:
        """In another precision; slopes stay in [0, 1], the others nonnegative."""
        return Multipliers(
            tuple(a.to(dtype) for a in self.alpha),
            tuple(b.to(dtype) for b in self.beta),
            None if self.weights is None else self.weights.to(dtype),
        )

    def storable(self) -> Multipliers:
        """Rounded to what a certificate holds: slopes to 1/255, the others to float32."""
        return Multipliers(
            tuple((255 * a).round() / 255 for a in self.alpha),
            tuple(b.float().to(b.dtype) for b in self.beta),
            None if self.weights is None else self.weights.float().to(self.weights.dtype),
        )

    def mix(self, rows: Tensor) -> Tensor:
        """The rows [batch, m, outputs] as they are, or their weighed sum [batch, 1, outputs]."""
        return rows if self.weights is None else self.weights.unsqueeze(-2) @ rows


class Ascended(NamedTuple):
    """The best bounds found, proved, and what gives them."""

    least: Tensor  # [batch, rows]
    multipliers: Multipliers
    points: Tensor  # [batch, rows, inputs]
    coefficients: dict[int, Tensor]  # of a_k, [batch, rows, n_k]
    linear: Backward | None = None  # the linear function below the rows, proved


def start(network: Network, rows: Tensor, bounds: LayerBounds) -> Multipliers:
    """The slopes of a plain backward pass, and no multipliers."""
    batch, count = rows.shape[:2]
    alpha, beta = [], []
    for slopes, lo in zip(first_slopes(bounds), bounds.lower, strict=True):
        alpha.append(slopes.to(rows.dtype).unsqueeze(-2).expand(batch, count, -1).contiguous())
        beta.append(rows.new_zeros(batch, count, lo.shape[-1]))
    return Multipliers(tuple(alpha), tuple(beta))


def first_slopes(bounds: LayerBounds) -> list[Tensor]:
    """The alpha [batch, n_k] of plain lines: those of `LayerBounds.lines` without any."""
    return [
        (up > -lo).to(lo.dtype) if fan is None else torch.full_like(fan.least, 0.5)
        for lo, up, fan in zip(bounds.lower, bounds.upper, bounds.fans, strict=True)
    ]


class Rows(NamedTuple):
    """Rows of one map of a network, to be bounded from below over a domain."""

    network: Network
    domain: Domain
    target: int  # the number of the map
    rows: Tensor  # [batch, m, outputs of the map]
    bounds: LayerBounds
    signs: Sequence[Tensor] | None = None  # [batch, n_k] per layer, of closed neurons

    def on(self, network: Network, domain: Domain) -> Rows:
        """The same of a network and a domain in another precision."""
        rows, bounds = self.rows.to(network.dtype), self.bounds.to(network.dtype)
        return Rows(network, domain, self.target, rows, bounds, self.signs)

    def closed(self) -> list[Tensor] | None:
        """The signs [batch, 1, n_k] of the layers below, in the precision of the rows."""
        if self.signs is None:
            return None
        return [s.unsqueeze(-2).to(self.rows.dtype) for s in self.signs[: self.target]]

    def backward(self, now: Multipliers, rounding: Rounding | None = None) -> Backward:
        """A backward pass with these slopes and multipliers."""
        closed, beta = self.closed(), None  # a smooth neuron has no sign
        if closed is not None:
            relus = (activation is RELU for activation in self.network.activations)
            each = zip(relus, closed, now.beta, strict=False)
            beta = [sign * one if relu else None for relu, sign, one in each]
        lines, rows = self.bounds.lines(now.alpha), now.mix(self.rows)
        return backward(
            self.network, self.domain, self.target, rows, lines, beta=beta, rounding=rounding
        )


def ascend(
    rows: Rows,
    *,
    begin: Multipliers | None = None,
    coarse: tuple[Network, Domain] | None = None,
    ascent: Ascent,
    done: Callable[[Tensor], bool],
) -> Ascended:
    """Raise the lower bounds of rows by gradient steps on their slopes and multipliers.

    If `begin` has weights, what is bounded is the weighed sum of the rows, and the weights are
    chosen as well: where it is positive, not all of the rows can be at most 0.

    Stops early when `done(least)` says so. The steps are taken on `coarse`, the same network and
    domain in a lower precision, if it is given; the result is evaluated in full precision, with
    its rounding error.
    """
    if coarse is not None:
        begin = None if begin is None else begin.to(coarse[0].dtype)
        best = _best_of_steps(rows.on(*coarse), begin, ascent, done)
        best = best._replace(multipliers=best.multipliers.to(rows.network.dtype))
    else:
        best = _best_of_steps(rows, begin, ascent, done)
    if ascent.storable:
        best = best._replace(multipliers=best.multipliers.storable())
    return _proved(rows, best)


def _best_of_steps(
    asked: Rows, begin: Multipliers | None, ascent: Ascent, done: Callable[[Tensor], bool]
) -> Ascended:
    """The best bounds of all steps, with rounding errors not yet taken off."""
    network, domain, target, rows, bounds, _ = asked
    now = begin or start(network, rows, bounds)
    crossing = [mask.unsqueeze(-2) for mask in bounds.unstable()[:target]]
    closed = asked.closed()
    moments = _Moments(now, target, ascent.means, with_beta=closed is not None)
    best: Ascended | None = None
    for step in range(ascent.steps + 1):
        passed = asked.backward(now)
        points = domain.maximiser(-passed.weight)
        best = _better(best, passed, now, points)
        if step == ascent.steps or done(best.least):
            break
        lines = bounds.lines(now.alpha)
        values, _, arrived = carry(network, target, points, lines, passed.coefficients)
        rate = ascent.rate * ascent.decay**step
        beta_rate = ascent.beta_rate * ascent.decay**step
        alpha_new, beta_new = list(now.alpha), list(now.beta)
        moments.tick()
        for k in range(target):
            if k + 1 not in values:
                continue
            z, coefficient = values[k + 1], passed.coefficients[k + 1]
            fan = bounds.fans[k]
            if fan is None:
                gradient = coefficient.clamp(min=0) * z * crossing[k]
            else:
                gradient = rise(network.activations[k], coefficient, fan, now.alpha[k], z)
            alpha_new[k] = (now.alpha[k] + rate * moments.alpha(k, gradient)).clamp(0, 1)
            if closed is not None and fan is None:
                size = coefficient.abs().mean(-1, keepdim=True)
                move = moments.beta(k, -closed[k] * z)
                beta_new[k] = (now.beta[k] + beta_rate * size * move).clamp(min=0)
        weights = _reweigh(now.weights, rows, arrived, ascent.weights_rate * rate)
        now = Multipliers(tuple(alpha_new), tuple(beta_new), weights)
    if best is None:
        raise AssertionError("at least one pass is made")
    return best


def carry(
    network: Network,
    target: int,
    points: Tensor,
    lines: Sequence[Lines],
    coefficients: dict[int, Tensor],
) -> tuple[dict[int, Tensor], dict[int, Tensor], Tensor]:
    """z_k and a_k [batch, rows, n_k] and the target's outputs at points [batch, rows, inputs],
    under the lines that the backward pass chose."""
    values = {0: points}
    result = {}
    for k in range(1, target + 1):
        if k not in coefficients:
            continue
        layer = network.layers[k - 1]
        z = layer([values[s] for s in layer.sources])
        values[k] = push(network.activations[k - 1], coefficients[k], lines[k - 1], z)
        result[k] = z
    affine = network.maps[target]
    return result, values, affine([values[s] for s in affine.sources])


def _reweigh(weights: Tensor | None, rows: Tensor, arrived: Tensor, rate: float) -> Tensor | None:
    """More weight for the rows that are greatest where the sum is least (Hedge)."""
    if weights is None:
        return None
    value = (rows * arrived).sum(-1)  # [batch, m]
    size = value.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(value.dtype).tiny)
    grown = weights * torch.exp(rate * value / size)
    return grown / grown.sum(-1, keepdim=True)


def _better(best: Ascended | None, passed: Backward, now: Multipliers, points: Tensor) -> Ascended:
    if best is None:
        return Ascended(passed.least, now, points, passed.coefficients)
    higher = passed.least > best.least
    wide = higher.unsqueeze(-1)

    def pick(new: Sequence[Tensor], old: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return tuple(torch.where(wide, a, b) for a, b in zip(new, old, strict=True))

    old = best.multipliers
    weights = None
    if now.weights is not None and old.weights is not None:
        weights = torch.where(higher, now.weights, old.weights)
    kept = Multipliers(pick(now.alpha, old.alpha), pick(now.beta, old.beta), weights)
    least = torch.where(higher, passed.least, best.least)
    return Ascended(least, kept, points, passed.coefficients)


def _proved(asked: Rows, best: Ascended) -> Ascended:
    """The same with bounds that hold whatever was rounded."""
    rounding = Rounding(asked.network, asked.domain, asked.bounds)
    passed = asked.backward(best.multipliers, rounding)
    points = asked.domain.maximiser(-passed.weight)
    return Ascended(passed.least, best.multipliers, points, passed.coefficients, passed)


class _Moments:
    """Adam's running means of the gradients, without its graph and hooks."""

    def __init__(
        self, like: Multipliers, target: int, means: tuple[float, float], *, with_beta: bool
    ) -> None:
        self._means = means
        self._alpha = [(torch.zeros_like(a), torch.zeros_like(a)) for a in like.alpha[:target]]
        kinds = like.beta[:target] if with_beta else ()
        self._beta = [(torch.zeros_like(b), torch.zeros_like(b)) for b in kinds]
        self._step = 0

    def tick(self) -> None:
        self._step += 1

    def alpha(self, k: int, gradient: Tensor) -> Tensor:
        return self._direction(self._alpha[k], gradient)

    def beta(self, k: int, gradient: Tensor) -> Tensor:
        return self._direction(self._beta[k], gradient)

    def _direction(self, moments: tuple[Tensor, Tensor], gradient: Tensor) -> Tensor:
        (first, second), (a, b) = moments, self._means
        first.mul_(a).add_(gradient, alpha=1 - a)
        second.mul_(b).addcmul_(gradient, gradient, value=1 - b)
        scale = (second / (1 - b**self._step)).sqrt_().add_(1e-12)
        return (first / (1 - a**self._step)) / scale
