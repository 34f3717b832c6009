"""Removal of a strictly increasing function at the end of a network, where the rows allow it.

For a strictly increasing f, f(z) <= c means z <= f^-1(c), and f(z_i) <= f(z_j) means z_i <= z_j. So
the rows can be stated on the arguments of f, and a network that is piecewise linear up to a final
sigmoid becomes piecewise linear altogether. f^-1(c) need not be known exactly: for a t with a
proved f(t) >= c, f(z) <= c implies z <= t, and f(z) < c implies z < t, so the row z <= t is met
wherever f(z) <= c is. For f(z) >= c, t needs a proved f(t) <= c. The lines of f over the interval
[t, t] bound f(t), and the bound is compared with c in rational numbers.

A limit that f never, or hardly, reaches is replaced by a weaker one that f does reach: real numbers
never meet f(z) >= 1 for a sigmoid, but a float32 program that rounds does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.network.activations.curve import Curve
from fgp_vnn.network.activations.gates import SOFTPLUS
from fgp_vnn.network.activations.inverses import ASINH, SINH
from fgp_vnn.network.activations.powers import EXP
from fgp_vnn.network.activations.sigmoids import S_SHAPED
from fgp_vnn.network.model import AffineMap, Combination, Dense, Network
from fgp_vnn.query import Query

_INCREASING = (*S_SHAPED, ASINH, EXP, SINH, SOFTPLUS)  # strictly, on all real numbers
_FARTHEST = 1e9  # t is searched between minus this and this
_LARGEST = 2**1000  # a limit beyond it may not fit into float64
_ROUNDED = Fraction(1, 2**24)  # part of f's range, at its end, that float32 may round to the end
_PROVED = Fraction(1, 2**30)  # part of f's range, at its end, in which no t can be proved
_HALVINGS = 100  # bisection steps in the search for t
_NEAR = range(46, 16, -3)  # t is moved by (1 + |t|) / 2**power until it is proved
_ROWS = 4096  # more rows take too long in rational numbers


class _Row(NamedTuple):
    """The row constant + sum of terms[i] * f(z_i), in exact numbers."""

    terms: dict[int, Fraction]  # coefficients by i, none of them 0
    constant: Fraction

    @property
    def compares(self) -> bool:
        """Whether the row is a multiple of f(z_i) - f(z_j)."""
        return len(self.terms) == 2 and not self.constant and not sum(self.terms.values())


def take_off_end(query: Query) -> Query:
    """The query restated on the arguments of the final function, met wherever this one is met; the
    query itself if the network does not end in such a function or a row has another form."""
    network = query.network
    curve = _end(network)
    if curve is None:
        return query
    # Only in float64: rounding to float32 would change a limit near the end of the range.
    rows = _rows(network.output) if network.dtype == torch.float64 else None
    if rows is None or not all(row.compares or len(row.terms) <= 1 for row in rows):
        return query
    signs, offsets = _before(rows, network.layers[-1].outputs, curve)
    if not bool(offsets.isfinite().all()):
        return query
    like = network.output.bias
    output = Combination(network.layers[-1], signs.to(like), offsets.to(like))
    return replace(query, network=_before_end(network, output))


def without_end(network: Network) -> Network | None:
    """The network without the strictly increasing function at its end, which does not change the
    order of the outputs; None if there is no such function, or the map after it is not the
    identity."""
    output = network.output
    if _end(network) is None or not isinstance(output, Dense) or not _from_file(output):
        return None
    same = torch.eye(output.outputs).to(output.bias)
    if bool(output.bias.any()) or not torch.equal(output.weights[0], same):
        return None
    return _before_end(network, network.layers[-1])


def _from_file(output: Dense) -> bool:
    """Whether the map's numbers are those of the file, and not sums, which would be rounded."""
    return output.defect is None and output.terms is None


def _end(network: Network) -> Curve | None:
    """The strictly increasing function that all outputs are read from, if there is one."""
    last = len(network.layers)
    if not last or network.output.sources != (last,):
        return None
    curve = network.activations[-1]
    return curve if isinstance(curve, Curve) and curve in _INCREASING else None


def _before_end(network: Network, output: AffineMap) -> Network:
    """The network with `output` in place of its last layer and its output map."""
    return Network(network.layers[:-1], output, network.inputs, network.activations[:-1])


def _rows(output: AffineMap) -> list[_Row] | None:
    """The rows of the output map; None unless each result of the network's own map reads at most
    one value, and all numbers are those of the file and of the property."""
    inner = output.inner if isinstance(output, Combination) else output
    if not isinstance(inner, Dense) or not _from_file(inner):
        return None
    matrix = inner.weights[0]
    numbers = (matrix, inner.bias, output.bias)
    if output.outputs > _ROWS or not all(bool(part.isfinite().all()) for part in numbers):
        return None
    if bool((matrix != 0).sum(-1).gt(1).any()):
        return None
    read = matrix.abs().argmax(-1, keepdim=True)
    parts = (part.flatten().tolist() for part in (read, matrix.gather(-1, read), inner.bias))
    values = [
        _Row({i: Fraction(weight)} if weight else {}, Fraction(bias))
        for i, weight, bias in zip(*parts, strict=True)
    ]
    if not isinstance(output, Combination):
        return values
    found = [_Row({}, Fraction(offset)) for offset in output.offset.tolist()]
    places = torch.nonzero(output.rows)
    factors = output.rows[places[:, 0], places[:, 1]].tolist()
    for (number, result), factor in zip(places.tolist(), factors, strict=True):
        found[number] = _added(found[number], values[result], Fraction(factor))
    return found


def _added(row: _Row, value: _Row, factor: Fraction) -> _Row:
    terms = dict(row.terms)
    for i, weight in value.terms.items():
        terms[i] = terms.get(i, Fraction()) + factor * weight
    return _Row({i: w for i, w in terms.items() if w}, row.constant + factor * value.constant)


def _before(rows: Sequence[_Row], width: int, curve: Curve) -> tuple[Tensor, Tensor]:
    """Signs [rows, width] and offsets [rows] with signs . z + offset <= 0 wherever the row is at
    most 0; an offset is infinite where no t is proved."""
    signs = torch.zeros(len(rows), width, dtype=torch.float64)
    offsets = torch.zeros(len(rows), dtype=torch.float64)
    bounding, limits, directions = list[int](), list[Fraction](), list[int]()
    for number, row in enumerate(rows):
        limit, always = _limit(row, curve.range)
        if limit is None and not row.compares:
            offsets[number] = -1 if always else 1
            continue
        for i, weight in row.terms.items():
            signs[number, i] = 1 if weight > 0 else -1
        if limit is not None:
            bounding.append(number)
            limits.append(limit)
            directions.append(1 if next(iter(row.terms.values())) > 0 else -1)
    if bounding:
        places = _places(curve, limits, directions)
        moved = [-d * t for d, t in zip(directions, places, strict=True)]
        offsets[bounding] = torch.tensor(moved, dtype=torch.float64)
    return signs, offsets


def _limit(row: _Row, ends: tuple[float, float]) -> tuple[Fraction | None, bool]:
    """The limit of f(z) in a row with one term, weakened if needed so that f, whose range has these
    ends, provably reaches it. (None, True) for a row that is always met, (None, False) for a row
    that is never met or that compares two values."""
    if row.compares:
        return None, False
    if not row.terms:
        return None, row.constant <= 0
    (weight,) = row.terms.values()
    limit, side = -row.constant / weight, 1 if weight > 0 else -1  # side * f(z) <= side * limit
    far, near = (end if side > 0 else -end for end in (ends if side < 0 else ends[::-1]))
    width = Fraction(far) - Fraction(near) if isfinite(far) and isfinite(near) else Fraction(1)
    if isfinite(far) and side * limit >= far:
        return None, True
    if not isfinite(near):
        return limit, False
    over = side * limit - Fraction(near)  # distance of the limit from the end that it approaches
    if over < -_ROUNDED * width:
        return None, False
    least = _ROUNDED if over <= 0 else _PROVED
    return (side * (Fraction(near) + max(over, least * width)), False)


def _places(curve: Curve, limits: Sequence[Fraction], directions: Sequence[int]) -> list[float]:
    """For each limit c, a t with a proved f(t) >= c, or f(t) <= c where the direction is -1;
    infinite where no t is proved."""
    within = [abs(c) < _LARGEST for c in limits]
    near = [float(c) if ok else 0.0 for c, ok in zip(limits, within, strict=True)]
    sought = torch.tensor(near, dtype=torch.float64)
    low, high = torch.full_like(sought, -_FARTHEST), torch.full_like(sought, _FARTHEST)
    for _ in range(_HALVINGS):
        middle = low / 2 + high / 2
        above = curve.value(middle) >= sought
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    found = [inf] * len(limits)
    way = torch.tensor(directions, dtype=torch.float64)
    for power in _NEAR:
        trial = high + way * (1 + high.abs()) * 2.0**-power
        envelope = curve.envelope(trial.unsqueeze(0), trial.unsqueeze(0))
        bounds = zip(
            trial.tolist(), envelope.least[0].tolist(), envelope.greatest[0].tolist(), strict=True
        )
        for number, (place, least, greatest) in enumerate(bounds):
            if isfinite(found[number]) or not within[number]:
                continue
            proved = least if directions[number] > 0 else greatest
            if isfinite(proved) and (Fraction(proved) - limits[number]) * directions[number] >= 0:
                found[number] = place
    return found
