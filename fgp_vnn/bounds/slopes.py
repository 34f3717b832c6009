"""Slopes and multipliers of linear bounds, chosen by gradient ascent.

A bound is the minimum of a linear function over the domain. By the envelope theorem its derivatives
need only the minimiser x*, carried forward through the lines that the backward pass chose. With z
the value that arrives at a neuron and A the coefficient of its output, d bound / d alpha =
max(A, 0) * z, and d bound / d beta = -s * (z - p) for a constraint s * (z - p) >= 0. No autograd
graph is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.bounds.backward import Backward, backward
from fgp_vnn.bounds.constraints import Constraints, Pressed, constraints, folded, unfolded, width
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.lines import Lines, push, rise
from fgp_vnn.bounds.multipliers import Layout, State
from fgp_vnn.bounds.multipliers import Multipliers as Multipliers
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.stepping import Adam, Best, Reaching, Rise, Steps
from fgp_vnn.domain.caps import Caps
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Network
from fgp_vnn.strategy import Ascent


class Ascended(NamedTuple):
    """The best bounds found, proved, and the multipliers that give them."""

    least: Tensor  # [batch, rows]
    multipliers: Multipliers
    points: Tensor  # [batch, rows, inputs] the minimisers of the linear functions
    coefficients: dict[int, Tensor]  # of a_k, [batch, rows, n_k]
    linear: Backward  # the proved linear bounds of the rows


def plain_multipliers(rows: Tensor, bounds: LayerBounds) -> Multipliers:
    """The slopes of a plain backward pass, and multipliers of 0."""
    batch, count = rows.shape[:2]
    alpha, beta = [], []
    parts = zip(first_slopes(bounds), bounds.activations, bounds.lower, strict=True)
    for slopes, activation, lo in parts:
        alpha.append(slopes.to(rows.dtype).unsqueeze(-2).expand(batch, count, -1).contiguous())
        beta.append(rows.new_zeros(batch, count, width(activation, lo.shape[-1])))
    return Multipliers(tuple(alpha), tuple(beta))


def first_slopes(bounds: LayerBounds) -> list[Tensor]:
    """The alpha [batch, n_k] of each layer for which `LayerBounds.lines` gives the same lines as
    without alpha."""
    return [
        (up > -lo).to(lo.dtype) if envelope is None else torch.full_like(envelope.least, 0.5)
        for lo, up, envelope in zip(bounds.lower, bounds.upper, bounds.envelopes, strict=True)
    ]


class Rows(NamedTuple):
    """Rows of one map of a network, to be bounded from below over a domain."""

    network: Network
    domain: Domain
    target: int  # number of the map
    rows: Tensor  # [batch, m, outputs of the map]
    bounds: LayerBounds
    signs: Sequence[Tensor] | None = None  # [batch, n_k] per layer, of closed neurons
    rounding: Rounding | None = None  # computed for these or wider bounds; None: not computed yet
    ends: Sequence[Tensor] | None = None  # [batch, 2, n_k] per layer, of smooth neurons, with signs

    def on(self, network: Network, domain: Domain) -> Rows:
        """The same rows for the network and domain in another precision."""
        rows, bounds = self.rows.to(network.dtype), self.bounds.to(network.dtype)
        return Rows(network, domain, self.target, rows, bounds, self.signs, ends=self.ends)

    def at(self, index: Tensor) -> Rows:
        """The batch entries `index`."""
        domain = self.domain
        if isinstance(domain, Caps) or (isinstance(domain, Box) and domain.lower.dim() > 1):
            domain = domain.at(index)
        signs = None if self.signs is None else [sign[index] for sign in self.signs]
        ends = None if self.ends is None else [end[index] for end in self.ends]
        rows, bounds = self.rows[index], self.bounds.at(index)
        return self._replace(domain=domain, rows=rows, bounds=bounds, signs=signs, ends=ends)

    def closed(self) -> Constraints | None:
        """The constraints of the layers below, in the precision of the rows; None without signs."""
        if self.signs is None:
            return None
        functions = self.network.activations[: self.target]
        ends = None if self.ends is None else self.ends[: self.target]
        return constraints(functions, self.signs[: self.target], ends, self.rows.dtype)

    def backward(self, now: Multipliers, rounding: Rounding | None = None) -> Backward:
        """A backward pass with these slopes and multipliers; with `rounding`, a proved bound."""
        closed, parts = self.closed(), now.beta[: self.target]
        beta = self.rows.new_zeros(0) if closed is None or not parts else torch.cat(parts, -1)
        return self.passed(now, closed, beta, rounding)[0]

    def passed(
        self,
        now: Multipliers,
        closed: Constraints | None,
        beta: Tensor,
        rounding: Rounding | None = None,
    ) -> tuple[Backward, list[Lines]]:
        """The backward pass of `backward`, and the lines that it used; `beta` are all multipliers
        of the constraints `closed`, concatenated."""
        network, domain, target, rows = self[:4]
        lines, pressed = self.bounds.lines(now.alpha), None
        if closed is not None:
            widths = [part.shape[-1] for part in now.beta[:target]]
            signed = torch.split(closed.sign * beta, widths, -1)
            proved = rounding is not None
            shift = closed.proved_shift(beta, target) if proved else closed.shift(beta)
            pressed = Pressed(folded(network.activations, signed), shift)
        mixed = now.mix(rows)
        made = backward(network, domain, target, mixed, lines, beta=pressed, rounding=rounding)
        return made, lines


def ascend(
    rows: Rows,
    *,
    begin: Multipliers | None = None,
    coarse: tuple[Network, Domain] | None = None,
    ascent: Ascent,
    done: Callable[[Tensor], bool],
) -> Ascended:
    """Raise the lower bounds of rows by gradient steps on their slopes and multipliers.

    If `begin` has weights, the weighted sum of the rows is bounded, and the weights are optimised
    as well: if the sum is positive, the rows cannot all be at most 0.

    Stops early when `done(least)` is true. The steps run on `coarse`, the same network and domain
    in a lower precision, if it is given; the result is evaluated in full precision, with its
    rounding error subtracted.
    """
    best = _best_of_steps(rows if coarse is None else rows.on(*coarse), begin, ascent, done)
    best = best.to(rows.network.dtype)
    return _proved(rows, best.storable() if ascent.storable else best)


def _best_of_steps(
    rows: Rows, begin: Multipliers | None, ascent: Ascent, done: Callable[[Tensor], bool]
) -> Multipliers:
    """The slopes and multipliers that gave the best bounds over all steps."""
    now = plain_multipliers(rows.rows, rows.bounds) if begin is None else begin
    whole = layout = Layout(now.to(rows.network.dtype), rows.target)
    state = layout.first
    # Polyak's steps have an aim.
    steps: Steps = Adam(ascent, state) if ascent.aim is None else Reaching(ascent, state)
    closed = rows.closed()
    passed, lines = rows.passed(layout.apart(state), closed, state.beta)
    best = Best(passed.least, state, moves=rows.signs is not None, most=ascent.left)
    for step in range(ascent.steps + 1):
        if step:
            passed, lines = rows.passed(layout.apart(state), closed, state.beta)
            best.see(passed.least, state)
        if step == ascent.steps or not rows.target or done(best.least):
            break
        left = best.left() if ascent.looks else None
        if left is not None:
            if not len(left):
                break
            rows, state, passed = rows.at(left), state.at(left), passed.at(left)
            layout = Layout(layout.apart(state), rows.target)
            lines, closed = rows.bounds.lines(layout.apart(state).alpha), rows.closed()
            steps.keep(left)
        points = rows.domain.maximiser(-passed.weight)
        found, _, arrived = carry(rows.network, rows.target, points, lines, passed.coefficients)
        rise = _rise(rows, layout, state, closed, found, passed.coefficients)
        rate = ascent.weights_rate * ascent.rate * ascent.decay**step
        weights = _reweigh(state.weights, rows.rows, arrived, rate)
        state = steps.next(state, rise, passed.least)._replace(weights=weights)
    return whole.apart(best.state)


def _rise(
    rows: Rows,
    layout: Layout,
    state: State,
    closed: Constraints | None,
    found: dict[int, Tensor],
    coefficients: dict[int, Tensor],
) -> Rise:
    """Gradients of the bounds, where the values `found` arrive at the layers."""
    now, network = layout.apart(state), rows.network
    rises: list[Tensor | None] = []  # by alpha; None for a layer that the rows do not read
    for k, mask in enumerate(rows.bounds.unstable()[: rows.target]):
        if k + 1 not in found:
            rises.append(None)
            continue
        z, coefficient, envelope = found[k + 1], coefficients[k + 1], rows.bounds.envelopes[k]
        if envelope is None:
            rises.append(coefficient.clamp(min=0) * z * mask.unsqueeze(-2))
        else:
            rises.append(rise(network.activations[k], coefficient, envelope, now.alpha[k], z))
    alpha = layout.of_values(rises)
    if closed is None:
        return Rise(alpha, None, None)
    arrived = [found.get(k + 1) for k in range(rows.target)]
    z = layout.of_neurons(unfolded(network.activations, arrived))
    return Rise(alpha, closed.rise(z), layout.sizes(coefficients))


def carry(
    network: Network,
    target: int,
    points: Tensor,
    lines: Sequence[Lines],
    coefficients: dict[int, Tensor],
) -> tuple[dict[int, Tensor], dict[int, Tensor], Tensor]:
    """z_k and a_k [batch, rows, n_k] and the target's outputs at points [batch, rows, inputs], with
    each activation replaced by the line that the backward pass chose."""
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
    """Raise the weights of rows that are large at the minimiser of their weighted sum (Hedge)."""
    if weights is None:
        return None
    value = (rows * arrived).sum(-1)  # [batch, m]
    size = value.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(value.dtype).tiny)
    grown = weights * torch.exp(rate * value / size)
    return grown / grown.sum(-1, keepdim=True)


def _proved(rows: Rows, best: Multipliers) -> Ascended:
    """The bounds given by `best`, with the rounding error subtracted."""
    rounding = rows.rounding or Rounding(rows.network, rows.domain, rows.bounds)
    passed = rows.backward(best, rounding)
    points = rows.domain.maximiser(-passed.weight)
    return Ascended(passed.least, best, points, passed.coefficients, passed)
