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
from fgp_vnn.bounds.multipliers import Layout, Moments, State
from fgp_vnn.bounds.multipliers import Multipliers as Multipliers
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.model import Network
from fgp_vnn.strategy import Ascent


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

    def of_relus(self, parts: Sequence[Tensor | None]) -> list[Tensor | None]:
        """What is known of each layer, without smooth ones: their neurons have no sign."""
        kinds = zip(self.network.activations, parts, strict=False)
        return [part if activation is RELU else None for activation, part in kinds]

    def backward(self, now: Multipliers, rounding: Rounding) -> Backward:
        """A backward pass with these slopes and multipliers, and a proved bound."""
        closed, beta = self.closed(), None
        if closed is not None:
            pairs = zip(closed, now.beta, strict=False)
            beta = self.of_relus([sign * one for sign, one in pairs])
        lines, rows = self.bounds.lines(now.alpha), now.mix(self.rows)
        return backward(
            self.network, self.domain, self.target, rows, lines, beta=beta, rounding=rounding
        )


class _Best(NamedTuple):
    """The best bounds so far, their slopes and multipliers, and the last pass."""

    least: Tensor
    state: State
    points: Tensor
    coefficients: dict[int, Tensor]


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
    network, domain, target, rows, bounds, signs = asked
    now = begin or start(network, rows, bounds)
    layout = Layout(now, target)
    state = layout.joined(now)
    masks = [mask.unsqueeze(-2) for mask in bounds.unstable()[:target]]
    closed = None if signs is None else layout.of_neurons(asked.closed() or [])
    alpha_moments, beta_moments = (
        Moments(part, ascent.means) for part in (state.alpha, state.beta)
    )
    best: _Best | None = None
    for step in range(ascent.steps + 1):
        now = layout.apart(state)
        lines, beta = bounds.lines(now.alpha), None
        if closed is not None:
            beta = asked.of_relus(layout.apart(state._replace(beta=closed * state.beta)).beta)
        passed = backward(network, domain, target, now.mix(rows), lines, beta=beta)
        points = domain.maximiser(-passed.weight)
        best = _better(best, passed, state, points, moves=closed is not None)
        if step == ascent.steps or not target or done(best.least):
            break
        found, _, arrived = carry(network, target, points, lines, passed.coefficients)
        rate = ascent.rate * ascent.decay**step
        rises = _rises(asked, now, found, passed.coefficients, masks)
        alpha = state.alpha + rate * alpha_moments.direction(layout.of_values(rises))
        moved = state.beta
        if closed is not None:
            z = layout.of_neurons(asked.of_relus([found.get(k + 1) for k in range(target)]))
            sizes = layout.sizes(passed.coefficients)
            beta_rate = ascent.beta_rate * ascent.decay**step
            moved = moved + beta_rate * sizes * beta_moments.direction(-closed * z)
        weights = _reweigh(state.weights, rows, arrived, ascent.weights_rate * rate)
        state = State(alpha.clamp(0, 1), moved.clamp(min=0), weights)
    if best is None:
        raise AssertionError("at least one pass is made")
    return Ascended(best.least, layout.apart(best.state), best.points, best.coefficients)


def _rises(
    asked: Rows,
    now: Multipliers,
    found: dict[int, Tensor],
    coefficients: dict[int, Tensor],
    masks: Sequence[Tensor],
) -> list[Tensor | None]:
    """How fast the bounds rise with alpha; None for a layer that they do not read."""
    rises: list[Tensor | None] = []
    for k, mask in enumerate(masks):
        if k + 1 not in found:
            rises.append(None)
            continue
        z, coefficient, fan = found[k + 1], coefficients[k + 1], asked.bounds.fans[k]
        if fan is None:
            rises.append(coefficient.clamp(min=0) * z * mask)
        else:
            activation = asked.network.activations[k]
            rises.append(rise(activation, coefficient, fan, now.alpha[k], z))
    return rises


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


def _better(
    best: _Best | None, passed: Backward, state: State, points: Tensor, *, moves: bool
) -> _Best:
    """The better of the two for each row; multipliers are compared only if they move."""
    if best is None:
        return _Best(passed.least, state, points, passed.coefficients)
    higher, old = passed.least > best.least, best.state
    wide = higher.unsqueeze(-1)
    alpha = torch.where(wide, state.alpha, old.alpha)
    beta = torch.where(wide, state.beta, old.beta) if moves else state.beta
    weights = state.weights
    if weights is not None and old.weights is not None:
        weights = torch.where(higher, weights, old.weights)
    least = torch.where(higher, passed.least, best.least)
    return _Best(least, State(alpha, beta, weights), points, passed.coefficients)


def _proved(asked: Rows, best: Ascended) -> Ascended:
    """The same with bounds that hold whatever was rounded."""
    rounding = Rounding(asked.network, asked.domain, asked.bounds)
    passed = asked.backward(best.multipliers, rounding)
    points = asked.domain.maximiser(-passed.weight)
    return Ascended(passed.least, best.multipliers, points, passed.coefficients, passed)
