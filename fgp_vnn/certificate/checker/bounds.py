"""The checker's linear bounds in float64, with bounds on their own rounding error.

A backward pass bounds a row r of a map F_t from below. At a ReLU with l <= z <= u, a positive
coefficient of relu(z) takes a line s*z with 0 <= s <= 1, which lies below. A negative one takes a
line c*z + m that lies above at both ends of [l, u], and so in between, because relu is convex. A
neuron that is known, or assumed, to be on or off is linear. An assumption sign*z >= 0 may also
enter with a Lagrange multiplier b >= 0: r >= r - b*sign*z wherever it holds. At the input, the
minimum of a linear function over a box has a closed form.

Rounding. Let u = 2^-53 and gamma(n) = n*u / (1 - n*u). A sum of n products computed in any order
is off by at most gamma(n) times the sum of their absolute values (Higham, Accuracy and Stability
of Numerical Algorithms, section 3.1), and by 2^-1075 more for each product that underflows.

After each layer of a backward pass, the computed coefficients count as exact. If the coefficients
of a vector are off by e, the bound moves by at most e * max|vector|, and the vectors, x and all
z_k, are bounded; so no error made at one layer grows at another. A layer adds |coefficients| . E_k
to the error, for a vector E_k that is computed once:
- applying a map of m outputs to n inputs: m products for each coefficient and for the bias, n in
  the sizes; twice the steps that composed its entries, once for these and once for their sizes;
- the lines of n neurons: three roundings of each coefficient, and n products with intercepts;
- at the input of n numbers: n products on either side;
- sums: a coefficient is added to others at most once for each map, a constant twice for each map,
  and three times at the end. 4 * maps + 16 covers that.
`gamma` doubles all counts, and errors are enlarged by 1 %: that covers the rounding of the error
bounds themselves.

Other activations have lines or planes of any slope (curves.py), so errors of z_k are weighted by
the coefficients of z_k, and errors of offsets by the largest offset.

Underflow. Within an E_k it is covered by SMALL, which is added to E_k and to each number that its
sizes consist of: the halves in an interval are off by 2^-1075, times weights of any size. Any other
underflow moves a bound by less than 2^-1074 times a vector. TINY covers these as long as no vector
exceeds LARGE; beyond that the checker gives up. Overflow: a constant that is not finite stays so,
and a coefficient makes the error infinite or NaN, since no E_k is 0: it proves nothing (`proved`).

Shapes: rows [batch, rows, n]; bounds, slopes, signs and multipliers [batch or 1, n].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.certificate.checker.curves import Planes, values
from fgp_vnn.certificate.checker.forms import Array, by_matrix
from fgp_vnn.certificate.checker.lines import Leaf, Lines, Signs, around
from fgp_vnn.certificate.checker.network import RELU, AffineMap, CheckedNetwork
from fgp_vnn.certificate.checker.rounding import SMALL, gamma

LARGE = 1e100
TINY = 1e-200
ENTRIES = 4_000_000  # largest number of coefficients held at once


def proved(bound: Array) -> Array:
    """The lower bounds, with -inf in place of infinite or NaN ones, which prove nothing."""
    return np.where(np.isfinite(bound), bound, -np.inf)


class Enclosure:
    """Bounds of every layer over each box of a batch.

    Computed by intervals, then by a backward pass for each neuron, except for ReLUs that the
    intervals prove to be off. `known` are signs [batch, neurons] that are already proved, such as
    those of an enclosing box.
    """

    def __init__(
        self, network: CheckedNetwork, lower: Array, upper: Array, known: Signs | None = None
    ) -> None:
        self.network = network
        self._known = known
        self.box = lower, upper  # [batch, inputs] each
        self._lines: list[Lines | Planes] = []  # of each layer, with default slopes
        self._values: list[tuple[Array, Array]] = []  # bounds of a_k
        self.lower: list[Array] = []  # of z_k, [batch, n_k]
        self.upper: list[Array] = []
        self._sizes = [np.maximum(np.abs(lower), np.abs(upper))]  # of x, then of a_k
        self._errors: list[Array] = []  # of applying a map, per coefficient of its outputs
        self.output_size = np.zeros(0)
        if not (self._sizes[0] <= LARGE).all():
            raise OverflowError("inputs beyond 1e100")
        with np.errstate(all="ignore"):
            for target, affine in enumerate(network.maps):
                self._reach(target, affine)

    def _reach(self, target: int, affine: AffineMap) -> None:
        """Compute the bounds of a map's outputs from the bounds of its sources."""
        read = [(s, self._sizes[s]) for s in affine.weights]
        size = affine.bias_size + np.zeros((len(self.box[0]), 1))
        for s, value in read:
            size = size + (value + SMALL) @ affine.sizes[s].T
        terms = affine.outputs + sum(w.shape[1] for w in affine.weights.values())
        count = terms + 2 * affine.steps + 4 * len(self.network.maps) + 16
        error = 1.01 * gamma(count) * size + SMALL
        self._errors.append(error)
        if not (size <= LARGE).all():
            raise OverflowError("values beyond 1e100 in the network")
        if target == len(self.network.maps) - 1:
            self.output_size = size
            return
        low, high = self._interval(affine)
        low, high = low - error, high + error
        if self._known is not None:
            begin = sum(self.network.widths[:target])
            signs = self._known[:, begin : begin + affine.outputs]
            low = np.where(signs > 0, np.maximum(low, 0), low)
            high = np.where(signs < 0, np.minimum(high, 0), high)
        self.lower.append(low)
        self.upper.append(high)
        if target > 0:
            self._tighten(target)
        kind, low, high = self.network.kinds[target], self.lower[-1], self.upper[-1]
        if kind == RELU:
            self._values.append((np.maximum(low, 0), np.maximum(high, 0)))
        else:
            self._values.append(values(kind, low, np.maximum(low, high)))
        self._sizes.append(np.maximum(*map(np.abs, self._values[-1])))
        if not (self._sizes[-1] <= LARGE).all():
            raise OverflowError("values beyond 1e100 in the network")
        self._lines.append(around(kind, low, high))

    def _interval(self, affine: AffineMap) -> tuple[Array, Array]:
        below = [self.box[0], *(low for low, _ in self._values)]
        above = [self.box[1], *(high for _, high in self._values)]
        middle, reach = affine.bias, np.zeros(1)
        for s, weight in affine.weights.items():
            middle = middle + ((below[s] + above[s]) / 2) @ weight.T
            reach = reach + ((above[s] - below[s]) / 2) @ np.abs(weight).T
        return middle - reach, middle + reach

    def _tighten(self, target: int) -> None:
        """Tighten the bounds by a backward pass for each neuron, except ReLUs proved to be off.

        ReLUs that are on get one too: they are linear whatever their bounds, but the intervals of
        later layers depend on these bounds.
        """
        wanted = (self.upper[target] > 0) | (self.network.kinds[target] != RELU)
        most = int(wanted.sum(-1).max(initial=0))
        # Boxes with fewer such neurons than others get extra rows whose bounds are discarded, so
        # that the bounds in a box do not depend on the other boxes of the batch.
        chosen = np.argsort(~wanted, axis=-1, kind="stable")[:, :most]
        some = max(1, ENTRIES // (2 * len(wanted) * max(self.widths)))
        for begin in range(0, most, some):
            part = chosen[:, begin : begin + some]
            least = self._descend(self._of_neurons(target, part), self._lines)
            least[~np.tile(np.take_along_axis(wanted, part, -1), 2)] = np.nan
            self.learn(target, part, least[:, : part.shape[1]])
            self.learn(target, part, least[:, part.shape[1] :], below=True)

    def signs(self) -> Signs:
        """The proved signs of all neurons, [batch, neurons]; 0 where unknown."""
        pairs = zip(self.lower, self.upper, strict=True)
        parts = [np.where(low >= 0, 1, np.where(high <= 0, -1, 0)) for low, high in pairs]
        none = np.zeros((len(self.box[0]), 0))
        return np.hstack([none, *parts]).astype(np.int8)

    @property
    def widths(self) -> list[int]:
        return [self.network.inputs, *self.network.widths]

    def learn(
        self, layer: int, neurons: NDArray[np.int64], least: Array, *, below: bool = False
    ) -> None:
        """Store the bounds z >= least, or -z >= least if `below`, of the neurons [batch, m], where
        they are finite and better than before."""
        known, sign = (self.upper[layer], -1.0) if below else (self.lower[layer], 1.0)
        old = sign * np.take_along_axis(known, neurons, -1)
        np.put_along_axis(known, neurons, sign * np.maximum(proved(least), old), -1)

    def least(self, target: int, rows: Array, leaves: Sequence[Leaf] | None = None) -> Array:
        """Proved lower bounds [batch, rows] of rows [batch, rows, outputs] of a map."""
        with np.errstate(all="ignore"):
            given: Sequence[Leaf | None] = leaves or [None] * target
            known = zip(self.network.kinds, self.lower, self.upper, given, strict=False)
            chosen = [around(*bounds) for bounds in known]
            return self._descend(self._of_rows(target, rows), chosen, leaves)

    def _of_rows(self, target: int, rows: Array) -> _Begun:
        affine = self.network.maps[target]
        parts = {s: by_matrix(rows, weight) for s, weight in affine.weights.items()}
        return _Begun(target, parts, rows @ affine.bias, _weigh(np.abs(rows), self._errors[target]))

    def _of_neurons(self, target: int, neurons: NDArray[np.int64]) -> _Begun:
        """The rows e_j, then the rows -e_j, of the neurons j [batch, m]."""
        affine = self.network.maps[target]
        parts = {s: _both(weight[neurons]) for s, weight in affine.weights.items()}
        error = np.take_along_axis(self._errors[target], neurons, -1)
        return _Begun(target, parts, _both(affine.bias[neurons]), np.abs(_both(error)))

    def _descend(
        self, begun: _Begun, chosen: Sequence[Lines | Planes], leaves: Sequence[Leaf] | None = None
    ) -> Array:
        """Continue a backward pass from the target's sources down to the input; returns proved
        lower bounds [batch, rows]."""
        target, waiting, constant, error = begun
        for layer in range(target - 1, -1, -1):
            coefficient = waiting.pop(layer + 1, None)
            if coefficient is None:
                continue
            through, offset, size, spare = self._pulled(layer, coefficient, chosen[layer])
            constant, error = constant + offset, error + spare
            if leaves is not None:
                multiplier = leaves[layer].multipliers[:, None]
                through = through - multiplier * leaves[layer].signs[:, None]
                size = size + multiplier
            affine = self.network.maps[layer]
            constant = constant + through @ affine.bias
            error = error + _weigh(size, self._errors[layer] + self._line_error(layer))
            for s, weight in affine.weights.items():
                part = by_matrix(through, weight)
                waiting[s] = waiting[s] + part if s in waiting else part
        if 0 in waiting:
            lower, upper = self.box
            slope = waiting[0]
            constant = constant + _weigh(np.maximum(slope, 0), lower)
            constant = constant + _weigh(np.minimum(slope, 0), upper)
            count = 2 * slope.shape[-1] + 4 * len(self.network.maps) + 16
            error = error + _weigh(np.abs(slope), gamma(count) * self._sizes[0] + SMALL)
        return proved(constant - 1.01 * error - TINY)

    def _pulled(
        self, layer: int, coefficient: Array, chosen: Lines | Planes
    ) -> tuple[Array, Array, Array, Array]:
        """Backward step through an activation: coefficients of z_k from those of a_k, the sum of
        offsets, the weights of errors of z_k, and the error of the offsets.

        Lines of ReLUs have slopes of at most 1 and offsets of at most |z|, so the error of z covers
        the error of their offsets."""
        if isinstance(chosen, Lines):
            low, chord, intercept = chosen
            offset = _weigh(np.minimum(coefficient, 0), intercept)
            through = coefficient * np.where(coefficient > 0, low[:, None], chord[:, None])
            return through, offset, np.abs(coefficient), np.zeros_like(offset)
        through, offset = chosen.pull(coefficient)
        share = gamma(self._count(layer))
        return (
            through,
            offset,
            np.abs(through),
            _weigh(np.abs(coefficient), share * chosen.size + SMALL),
        )

    def _line_error(self, layer: int) -> Array:
        """Error of the lines of a layer: upper bound on |z|, times the roundings of their
        products."""
        lower, upper = self.lower[layer], self.upper[layer]
        return gamma(self._count(layer)) * np.maximum(np.abs(lower), np.abs(upper)) + SMALL

    def _count(self, layer: int) -> int:
        """Number of roundings of the lines of a layer."""
        return int(self.lower[layer].shape[-1]) + 4 * len(self.network.maps) + 16


class _Begun(NamedTuple):
    """State of a backward pass after its target map."""

    target: int
    waiting: dict[int, Array]  # coefficients of the target map's sources
    constant: Array  # [batch, rows]
    error: Array  # [batch, rows]


def _both(values: Array) -> Array:
    return np.concatenate([values, -values], axis=1)


def _weigh(rows: Array, vector: Array) -> Array:
    """rows [batch, rows, n] . vector [batch or 1, n]."""
    return (rows @ vector[:, :, None])[..., 0]
