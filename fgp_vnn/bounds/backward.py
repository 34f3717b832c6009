"""Linear bounds (CROWN) of a batch of bundles, valid in all regions of a bundle at once.

The pass goes backward from the rows of a target map. At a ReLU with l <= z <= u, a positive
coefficient takes the lower line (slope alpha in [0, 1]) and a negative one the chord. Any other
activation has several lines below and above it, and alpha chooses among them (see `lines`). A
closed neuron of sign s takes slope 1 or 0, and its constraint s*z >= 0 enters with a Lagrange
multiplier beta >= 0; so do the ends of the interval of a split smooth neuron (see `constraints`).
The result at the input is a linear function. Its minimum over the domain is a lower bound of the
row in the bundle, for every choice of alpha and beta.

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
from fgp_vnn.bounds.lines import Lines, pull
from fgp_vnn.bounds.rounding import Rounding, dot
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.model import Network


class Backward(NamedTuple):
    """row . target >= weight . (x - center) + constant in the bundle."""

    weight: Tensor  # [batch, rows, inputs]
    constant: Tensor  # [batch, rows]
    least: Tensor  # [batch, rows] minimum over the domain; proved if `rounding` was given
    nominal: Tensor  # [batch, rows] the minimum without the rounding error subtracted
    coefficients: dict[int, Tensor]  # of a_k, [batch, rows, n_k]

    def at(self, index: Tensor | tuple[slice, Tensor]) -> Backward:
        """The entries `index` of each tensor."""
        coefficients = {k: part[index] for k, part in self.coefficients.items()}
        weight, constant, least, nominal = (part[index] for part in self[:4])
        return Backward(weight, constant, least, nominal, coefficients)


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
    """Lower bounds of the rows of map number `target` (0 is F_1, K is F_out).

    `beta` holds signed multipliers s*beta per layer; it is a `Pressed` if they also shift the
    constant. With `rounding` the rounding error of this computation is subtracted, so that `least`
    is a proved bound.
    """
    taken, shift = beta if isinstance(beta, Pressed) else Pressed(beta or ())
    affine = network.maps[target]
    waiting: dict[int, Tensor] = {}
    add_parts(waiting, affine.sources, affine.adjoint(rows))
    error = None if rounding is None else rounding.of_map(target, rows)
    constant = rows @ affine.bias
    begun = Begun(target, waiting, constant if shift is None else constant + shift, error)
    return descend(network, domain, begun, lines, taken or None, rounding)


def backward_neurons(
    network: Network,
    domain: Domain,
    target: int,
    neurons: Tensor,
    lines: Sequence[Lines],
    *,
    rounding: Rounding,
) -> tuple[Tensor, Tensor]:
    """Proved lower and upper bounds [batch, m] of the neurons [batch, m] of map number `target`.

    Equal to `backward` with the rows e_j and -e_j, without the first matrix product.
    """
    affine = network.maps[target]
    waiting: dict[int, Tensor] = {}
    parts = tuple(torch.cat([part, -part], dim=-2) for part in affine.rows_at(neurons))
    add_parts(waiting, affine.sources, parts)
    bias = affine.bias[neurons]
    error = rounding.of_neurons(target, neurons)
    begun = Begun(
        target, waiting, torch.cat([bias, -bias], dim=-1), torch.cat([error, error], dim=-1)
    )
    least = descend(network, domain, begun, lines, None, rounding).least
    low, high = least.chunk(2, dim=-1)
    return low, -high


def backward_sides(
    network: Network,
    domain: Domain,
    target: int,
    sides: Tensor,
    lines: Sequence[Lines],
    *,
    rounding: Rounding,
) -> Tensor:
    """Proved lower bounds [batch, m] of z_j for the sides j [batch, m] of map number `target`, and
    of -z_j for the sides j + n, where n is the number of its neurons.

    Half of the work of `backward_neurons` where only one bound of a neuron is asked for.
    """
    affine = network.maps[target]
    neurons = sides % affine.outputs
    sign = torch.where(sides < affine.outputs, 1.0, -1.0).to(network.dtype)
    waiting: dict[int, Tensor] = {}
    parts = tuple(part * sign.unsqueeze(-1) for part in affine.rows_at(neurons))
    add_parts(waiting, affine.sources, parts)
    error = rounding.of_neurons(target, neurons)
    begun = Begun(target, waiting, affine.bias[neurons] * sign, error)
    return descend(network, domain, begun, lines, None, rounding).least


class Begun(NamedTuple):
    """State of a backward pass after its target map."""

    target: int
    waiting: dict[int, Tensor]  # coefficients of the target map's sources
    constant: Tensor  # [batch, rows]
    error: Tensor | None  # [batch, rows]


def descend(
    network: Network,
    domain: Domain,
    begun: Begun,
    lines: Sequence[Lines],
    beta: Sequence[Tensor | None] | None,
    rounding: Rounding | None,
) -> Backward:
    """Continue a backward pass from the target's sources down to the input."""
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
            error = rounding.of_layer(k, coefficient, multiplier, onto=error)
        add_parts(waiting, maps[k - 1].sources, maps[k - 1].adjoint(through))
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
    """constant [batch or 1, rows] + row . bias for rows [batch, rows, n]."""
    if constant.shape != rows.shape[:-1]:
        return constant + rows @ bias
    flat = torch.addmv(constant.reshape(-1), rows.reshape(-1, len(bias)), bias)
    return flat.reshape(constant.shape)


def add_parts(waiting: dict[int, Tensor], sources: Sequence[int], parts: Sequence[Tensor]) -> None:
    """Add coefficients of each source to those that wait for it."""
    for source, part in zip(sources, parts, strict=True):
        waiting[source] = waiting[source] + part if source in waiting else part
