"""Linear bounds of a batch of bundles: what holds in all regions of a bundle at once.

Backward from the rows of a target map: at a ReLU with l <= z <= u a positive coefficient takes the
lower line (slope alpha in [0, 1]) and a negative one the chord; any other activation has lines
below and above it, among which alpha chooses (see `lines`). A closed neuron of sign s takes slope 1
or 0, and its constraint s*z >= 0 enters with a multiplier beta >= 0; so do the ends of the interval
of a smooth neuron that was split (see `constraints`). What arrives at the input is a linear
function whose least value over the domain is a lower bound of the row in the bundle, for every
choice of alpha and beta.

Shapes: rows [batch, rows, outputs of the target]; bounds of layer k [batch or 1, n_k]; slopes and
multipliers of layer k [batch or 1, rows or 1, n_k].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import below
from fgp_vnn.bounds.constraints import Pressed
from fgp_vnn.bounds.intervals import interval_step as interval_step
from fgp_vnn.bounds.layers import LayerBounds as LayerBounds
from fgp_vnn.bounds.layers import unsteady
from fgp_vnn.bounds.lines import Lines as Lines
from fgp_vnn.bounds.lines import pull
from fgp_vnn.bounds.patches import PatchPass
from fgp_vnn.bounds.rounding import Rounding as Rounding
from fgp_vnn.bounds.rounding import dot
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import rows_at_once
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.model import AffineMap, Dense, Network


class Backward(NamedTuple):
    """row . target >= weight . (x - center) + constant in the bundle."""

    weight: Tensor  # [batch, rows, inputs]
    constant: Tensor  # [batch, rows]
    least: Tensor  # [batch, rows] the least value over the domain; with rounding, proved and finite
    nominal: Tensor  # [batch, rows] the same without the rounding error taken off
    coefficients: dict[int, Tensor]  # of a_k, [batch, rows, n_k]


def backward(
    network: Network,
    domain: Domain,
    target: int,
    rows: Tensor,
    lines: Sequence[Lines],
    *,
    beta: Sequence[Tensor | None] | Pressed | None = None,
    rounding: Rounding | None = None,
) -> Backward:
    """Bound the rows of map number `target` (0 is F_1, K is F_out) from below.

    `beta` holds signed multipliers s*beta per layer, if they add to the constant with what they
    add. With `rounding` the error of this computation itself is taken off, so that `least` is a
    proved bound.
    """
    taken, shift = beta if isinstance(beta, Pressed) else Pressed(beta or ())
    affine = network.maps[target]
    waiting: dict[int, Tensor] = {}
    _add(waiting, affine, affine.adjoint(rows))
    error = None if rounding is None else rounding.of_map(target, rows)
    constant = rows @ affine.bias
    begun = _Begun(target, waiting, constant if shift is None else constant + shift, error)
    return _descend(network, domain, begun, lines, taken or None, rounding)


def backward_neurons(
    network: Network,
    domain: Domain,
    target: int,
    neurons: Tensor,
    lines: Sequence[Lines],
    *,
    rounding: Rounding,
) -> tuple[Tensor, Tensor]:
    """Proved lower and upper bounds [batch, m] of the neurons [batch, m] of a map.

    The same as `backward` with the rows e_j and -e_j, which need no product to begin with.
    """
    affine = network.maps[target]
    waiting: dict[int, Tensor] = {}
    parts = tuple(torch.cat([part, -part], dim=-2) for part in affine.rows_at(neurons))
    _add(waiting, affine, parts)
    bias = affine.bias[neurons]
    error = rounding.of_neurons(target, neurons)
    begun = _Begun(
        target, waiting, torch.cat([bias, -bias], dim=-1), torch.cat([error, error], dim=-1)
    )
    least = _descend(network, domain, begun, lines, None, rounding).least
    low, high = least.chunk(2, dim=-1)
    return low, -high


class _Begun(NamedTuple):
    """A backward pass that has gone through its target map."""

    target: int
    waiting: dict[int, Tensor]  # coefficients of what the map reads
    constant: Tensor  # [batch, rows]
    error: Tensor | None  # [batch, rows]


def _descend(
    network: Network,
    domain: Domain,
    begun: _Begun,
    lines: Sequence[Lines],
    beta: Sequence[Tensor | None] | None,
    rounding: Rounding | None,
) -> Backward:
    """The way from the target's sources down to the input."""
    target, waiting, constant, error = begun
    maps = network.maps
    kept: dict[int, Tensor] = {}
    for k in range(target, 0, -1):
        coefficient = waiting.pop(k, None)
        if coefficient is None:
            continue
        kept[k] = coefficient
        activation = network.activations[k - 1]
        if (lines[k - 1].floor is None) != (activation is RELU):
            raise AssertionError("lines of another activation")
        through, constant = pull(
            activation, coefficient, lines[k - 1], maps[k - 1].outputs, constant
        )
        multiplier = None if beta is None else beta[k - 1]
        if multiplier is not None:
            through = through - multiplier
        constant = _weighed(constant, through, maps[k - 1].bias)
        if rounding is not None and error is not None:
            error = rounding.after_layer(error, k, coefficient, multiplier)
        _add(waiting, maps[k - 1], maps[k - 1].adjoint(through))
    weight = waiting.get(0)
    if weight is None:
        weight = constant.new_zeros(*constant.shape, network.inputs)
    constant = constant + dot(weight, domain.center.unsqueeze(-2))
    reach = domain.support(weight if domain.symmetric else -weight)
    least = nominal = constant - reach
    if rounding is not None and error is not None:
        least = below(nominal - (error + rounding.of_input(weight, reach)))
    return Backward(weight, constant, least, nominal, kept)


def _weighed(constant: Tensor, rows: Tensor, bias: Tensor) -> Tensor:
    """The constant [batch or 1, rows] and row . bias for rows [batch, rows, n]."""
    if constant.shape != rows.shape[:-1]:
        return constant + rows @ bias
    flat = torch.addmv(constant.reshape(-1), rows.reshape(-1, len(bias)), bias)
    return flat.reshape(constant.shape)


def _add(waiting: dict[int, Tensor], affine: AffineMap, parts: tuple[Tensor, ...]) -> None:
    for source, part in zip(affine.sources, parts, strict=True):
        waiting[source] = waiting[source] + part if source in waiting else part


def root_bounds(
    network: Network,
    domain: Domain,
    *,
    known: LayerBounds | None = None,
    prior: LayerBounds | None = None,
    worth: Sequence[Tensor] | None = None,
    backward_pass: bool = True,
    budget: Budget,
) -> LayerBounds:
    """Bounds of every layer over the domain: intervals first, then one backward pass for the
    neurons that the intervals leave unstable, as many at a time as fit into the memory.

    `known` are the bounds of the first layers, if they are there already, and `prior` are bounds
    that hold anyway. Of the layers' neurons only those of `worth` [n_k] get a backward pass, if it
    is given. When time is up, the neurons that are left keep their intervals, and the layers that
    are left their prior bounds or none.
    """
    rounding, most = None, None
    bounds = known or LayerBounds((), ())
    if prior is not None and backward_pass and prior.lower:
        most = prior.most_unstable()
    for k in range(len(bounds.lower), len(network.layers)):
        if budget.expired():
            return _with_prior(network, bounds, prior)
        lower, upper = interval_step(network, domain, bounds, k)
        lower, upper = (b.reshape(-1, b.shape[-1]) for b in (lower, upper))
        if prior is not None:
            lower = torch.maximum(lower, prior.lower[k])
            upper = torch.minimum(upper, prior.upper[k])
        # Of an operator, intervals know the box around a ball only.
        exact = k == 0 and (isinstance(network.maps[0], Dense) or isinstance(domain, Box))
        if backward_pass and not exact:
            rounding = Rounding(network, domain, bounds, rounding)
            wanted = None if worth is None else worth[k]
            sides = _Sides(lower, upper, wanted, None if most is None else most[k])
            lower, upper = _tighten(network, rounding, bounds, k, sides, budget)
        bounds = bounds.followed_by(lower, upper, network.activations[k])
    return bounds


def _with_prior(network: Network, bounds: LayerBounds, prior: LayerBounds | None) -> LayerBounds:
    """The bounds of the first layers, with prior bounds of the others, or infinite ones."""
    for k in range(len(bounds.lower), len(network.layers)):
        endless = network.output.bias.new_full((1, network.widths[k]), torch.inf)
        sides = (-endless, endless) if prior is None else (prior.lower[k], prior.upper[k])
        bounds = bounds.followed_by(*sides, network.activations[k])
    return bounds


class _Sides(NamedTuple):
    """What is known of a layer before its backward pass."""

    lower: Tensor  # [batch, n_k]
    upper: Tensor  # [batch, n_k]
    wanted: Tensor | None  # [n_k] the neurons that are worth a pass
    most: int | None  # of them are unstable in a bundle, at most


def _tighten(
    network: Network,
    rounding: Rounding,
    bounds: LayerBounds,
    k: int,
    sides: _Sides,
    budget: Budget,
) -> tuple[Tensor, Tensor]:
    """Bound the unstable neurons of each bundle by a backward pass of their own rows."""
    lower, upper, wanted, most = sides
    crossing = unsteady(network.activations[k], lower, upper)  # [batch, n_k]
    if wanted is not None:
        crossing = crossing & wanted
    if len(crossing) == 1:
        chosen = torch.nonzero(crossing[0]).T  # [1, most]
    else:
        if most is None:
            most = int(crossing.sum(-1).max()) if len(crossing) else 0
        # A bundle with fewer unstable neurons than another gets some stable ones bounded as well.
        chosen = crossing.to(torch.int8).topk(most, dim=-1).indices  # [batch, most]
    if not chosen.shape[-1] or budget.expired():
        return lower, upper
    if len(crossing) == 1:
        patches = _patch_pass(network, rounding, bounds, k)
        if patches.pays:
            return _tighten_by_patches(patches, chosen[0], (lower, upper), budget)
    lines, domain = bounds.lines(), rounding.domain
    lower, upper = lower.clone(), upper.clone()
    some = rows_at_once(network, k, 2 * len(crossing), budget.at_once)  # two rows for a neuron
    for part in torch.split(chosen, some, dim=-1):
        low, high = backward_neurons(network, domain, k, part, lines, rounding=rounding)
        lower.scatter_(-1, part, torch.maximum(lower.gather(-1, part), low))
        upper.scatter_(-1, part, torch.minimum(upper.gather(-1, part), high))
        if budget.expired():
            break
    return lower, upper


def _patch_pass(network: Network, rounding: Rounding, bounds: LayerBounds, k: int) -> PatchPass:
    lines = bounds.lines()

    def rest(layer: int, waiting: dict[int, Tensor], constant: Tensor, error: Tensor) -> Tensor:
        begun = _Begun(layer, waiting, constant, error)
        return _descend(network, rounding.domain, begun, lines, None, rounding).least

    return PatchPass(network, k, lines, rounding, rest)


def _tighten_by_patches(
    patches: PatchPass, neurons: Tensor, sides: tuple[Tensor, Tensor], budget: Budget
) -> tuple[Tensor, Tensor]:
    """The same for some neurons [m] of one bundle, by rows that are patches."""
    low, high = patches.bounds(neurons, budget)
    lower, upper = (side.clone() for side in sides)
    lower[0, neurons] = torch.maximum(lower[0, neurons], low)
    upper[0, neurons] = torch.minimum(upper[0, neurons], high)
    return lower, upper
