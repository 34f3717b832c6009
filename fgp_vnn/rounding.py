"""What rounding does to a computed number: one theorem, and the errors of a backward pass.

Let u be the unit roundoff of a precision and t its smallest normal number. Every operation gives
(a op b)(1 + d) + e with |d| <= u and |e| <= t, whether small results lose digits or are flushed to
zero. Where small operands are flushed too, computed ones are normal already; what is not computed
(weights, centres, biases, or their casts to a lower precision) may be off by t.

*Theorem.* Let a result be a sum of terms, of which each passes through at most T roundings, and let
S be the sum of the terms' absolute values, N the number of all operations, and R the sum of the
absolute values of what is multiplied by numbers that are not computed. If T u <= 1/8, then the
result is off by at most

    share(T) S + lost (N + R),    share(T) = 2 T u,    lost = 8 t,

and so is what this bound itself is computed to, from S, with at most T roundings of each term.

*Proof.* A term is off by at most (1 + u)^T - 1 <= T u / (1 - T u) <= (8/7) T u of its size. A sum
loses up to 3 t, with its operands, and a product by x up to (1 + |x|) t; what comes after makes
that at most 8/7 times larger: (24/7) t (N + R). Computing S loses as much, of which share(T) <= 1/4
counts, and the roundings of S make it smaller by (8/7) T u <= 1/7 of itself: so share(T) S is at
least 2 T u (6/7) S, which is more than (8/7) T u S, less (6/7) t (N + R). And 24/7 + 6/7 < 8.

What a result has lost is multiplied by what it is multiplied by later: `AffineMap.lost` follows
that. A sum of bounds that have no such room, as defects, is multiplied by `grow(T)`. A sum that is
too long, or that overflows, has an infinite error or none that is a number; `below` makes that no
bound at all, and a comparison with it proves nothing.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from fgp_vnn.bounds import LayerBounds
    from fgp_vnn.domain import Domain
    from fgp_vnn.network.model import Network


class Unit(NamedTuple):
    """The constants of the theorem in one precision."""

    eps: float  # twice the unit roundoff
    tiny: float  # the smallest normal number

    @property
    def lost(self) -> float:
        """What each operation may lose to underflow, and the room to compute that."""
        return 8 * self.tiny

    @property
    def nothing(self) -> float:
        """What squares that underflow leave of a norm is below this: a neuron that is smaller may
        be taken for 0, at the price of a defect."""
        return sqrt(self.lost / self.eps)

    def root(self, count: int) -> float:
        """What underflow of their squares takes from the norm of so many numbers, at most."""
        return sqrt(4 * self.lost * count)

    def share(self, operations: float) -> float:
        """The relative error of so many roundings; infinite if they are too many to bound."""
        return operations * self.eps if operations * self.eps <= 0.25 else inf

    def grow(self, operations: float) -> float:
        """What a sum of nonnegative terms is multiplied by to be an upper bound of it."""
        return 1 + self.share(operations)


def unit(dtype: torch.dtype) -> Unit:
    """The constants of a precision."""
    info = torch.finfo(dtype)
    return Unit(info.eps, info.tiny)


def below(bound: Tensor) -> Tensor:
    """A lower bound as it is where it is one: what overflowed, either way, bounds nothing."""
    return torch.where(bound < inf, bound, -inf)


def above(bound: Tensor) -> Tensor:
    """The same for an upper bound."""
    return torch.where(bound > -inf, bound, inf)


def positive(bound: Tensor) -> Tensor:
    """Which lower bounds prove something to be above 0: none that overflowed.

    Whatever is closed, dropped or passed over by a comparison is so by this one.
    """
    return (bound > 0) & (bound < inf)


def rounded_down(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The values in another precision, rounded down to normal numbers or 0."""
    cast, tiny = values.to(dtype), unit(dtype).tiny
    cast = torch.where(cast > values, cast.nextafter(torch.full_like(cast, -torch.inf)), cast)
    flushed = torch.where(values < 0, -tiny, 0.0).to(dtype)
    return torch.where(cast.abs() < tiny, flushed, cast)


def moved_center(
    center: Tensor, device: torch.device | str, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """A centre in another precision, and how far each coordinate has moved, in float64."""
    cast = center.to(device, dtype)
    return cast, (cast.to("cpu", torch.float64) - center.cpu().double()).abs()


def larger_radius(radius: float, moved: float, inputs: int, dtype: torch.dtype) -> float:
    """A radius with room for a centre that has moved; the root of a sum of squares is the length
    of that, with as many roundings as inputs and three more."""
    if moved:
        radius = (radius + moved) * unit(torch.float64).grow(inputs + 8)
    return max(radius, unit(dtype).tiny) if radius else radius


class Rounding:
    """Bounds on the rounding error of a backward pass.

    After each step the computed coefficients count as exact, and what their errors do to the bound
    is charged at once: a coefficient of a_k or z_k that is off by e moves the bound by at most
    e |z_k|, and |z_k| is bounded by the layer bounds. So an error made at one layer never grows
    with depth. `_terms` [batch or 1, n] are weighed by the rows that a map is applied to, and
    `_floors` [batch or 1, 1] are not.
    """

    def __init__(
        self,
        network: Network,
        domain: Domain,
        bounds: LayerBounds,
        before: Rounding | None = None,
    ) -> None:
        """`before` is the same for the bounds of fewer layers."""
        self._unit = unit(network.dtype)
        self.domain = domain
        read_by = [0] * len(network.maps)  # how many maps read each source
        for source in (s for affine in network.maps for s in affine.sources):
            read_by[source] += 1
        lost, box = self._unit.lost, domain.box()
        sizes = [torch.maximum(box.lower.abs(), box.upper.abs()), *bounds.sizes()]
        self._sizes = [size.reshape(-1, size.shape[-1]) + lost for size in sizes]
        self._terms: list[Tensor] = [] if before is None else [*before._terms]
        self._floors: list[Tensor] = [] if before is None else [*before._floors]
        for index, affine in enumerate(network.maps):
            if index < len(self._terms):
                continue
            if any(source >= len(sizes) for source in affine.sources):
                break
            read = [self._sizes[s] for s in affine.sources]
            # A coefficient is then added to those of other maps, and what a map adds to the
            # constant passes through two sums for each layer below it and four at the input.
            merged = max(read_by[s] for s in affine.sources)
            steps = affine.operations + affine.outputs + max(merged, 2 * index + 4)
            gone = affine.lost(read)
            terms = self._unit.share(steps) * affine.magnitude(read) + lost * (gone.forward + 1)
            if affine.defect is not None:
                terms = terms + self._unit.grow(steps) * affine.defect
            self._terms.append(terms)
            self._floors.append(lost * (gone.backward + 4 * affine.outputs + _sum(terms)))

    def of_map(self, index: int, rows: Tensor) -> Tensor:
        """Of applying map number `index` to rows [batch, rows, outputs]."""
        return dot(rows.abs(), _wide(self._terms[index])) + self._floors[index]

    def of_neurons(self, index: int, neurons: Tensor) -> Tensor:
        """Of the rows [batch, m] of single neurons."""
        terms = self._terms[index].expand(len(neurons), -1)
        return terms.gather(-1, neurons) + self._floors[index]

    def of_layer(self, layer: int, size: Tensor) -> Tensor:
        """Of the ReLUs of a layer and of the map below it, for coefficients of this size.

        Slopes are at most 1, so what goes through a ReLU is no larger than what came to it: three
        roundings of each coefficient, weighed by |z|. Intercepts are at most |z| as well; each
        takes three operations, and their product with the coefficients has 2 n of them.
        """
        lost, sizes, width = self._unit.lost, self._sizes[layer], size.shape[-1]
        share = self._unit.share(width + 2 * layer + 8)
        terms = self._terms[layer - 1] + (share + lost) * sizes + 4 * lost
        floor = self._floors[layer - 1] + lost * (4 * _sum(sizes) + 4 * width + _sum(terms))
        return dot(size, _wide(terms)) + floor

    def of_input(self, weight: Tensor, reach: Tensor) -> Tensor:
        """Of the value at the domain's centre and of the support `reach` [batch, rows]."""
        inputs, lost = weight.shape[-1], self._unit.lost
        terms = self._unit.share(inputs + 6) * self._sizes[0] + lost
        error = dot(weight.abs(), _wide(terms)) + self.domain.unsure(weight, reach)
        return error + lost * (4 * inputs + 4 + _sum(terms))


def _wide(vectors: Tensor) -> Tensor:
    """[n] or [batch, n] as [batch or 1, 1, n]."""
    return vectors.reshape(-1, 1, vectors.shape[-1])


def _sum(vectors: Tensor) -> Tensor:
    return vectors.sum(-1, keepdim=True)


def dot(rows: Tensor, vector: Tensor) -> Tensor:
    """row . vector for rows [batch, rows, n] and one vector [batch or 1, 1, n] for each batch."""
    return (rows @ vector.transpose(-1, -2)).squeeze(-1)
