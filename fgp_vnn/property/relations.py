"""Constraints between inputs: which inputs are equal, and which bounds the constraints imply."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from fgp_vnn.property.formula import Bound, Names, Row, outward

_ROUNDS = 8  # longest chain of constraints followed to bound an input that has no bounds
_LARGEST = Fraction(sys.float_info.max)
_NO_ENDS = (-math.inf, math.inf)


class Interval(NamedTuple):
    """The interval of values allowed for one variable; an open end is excluded."""

    lower: float = -math.inf
    open_lower: bool = False
    upper: float = math.inf
    open_upper: bool = False

    def cut(self, bound: Bound) -> Interval:
        """The part that meets a bound."""
        value = bound.value + 0.0  # -0.0 and 0.0 are the same bound
        if bound.upper:
            if value < self.upper:
                return Interval(self.lower, self.open_lower, value, bound.strict)
            if value == self.upper and bound.strict:
                return self._replace(open_upper=True)
        else:
            if value > self.lower:
                return Interval(value, bound.strict, self.upper, self.open_upper)
            if value == self.lower and bound.strict:
                return self._replace(open_lower=True)
        return self

    @property
    def empty(self) -> bool:
        touching = self.lower == self.upper and (self.open_lower or self.open_upper)
        return self.lower > self.upper or touching


def shared(count: int, pairs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Number `count` inputs from 0 in their order, with the same number for inputs that `pairs`
    make equal."""
    first = list(range(count))

    def root(i: int) -> int:
        while first[i] != i:
            first[i] = first[first[i]]
            i = first[i]
        return i

    for pair in pairs:
        low, high = sorted(map(root, pair))
        first[high] = low
    roots = [root(i) for i in range(count)]
    numbers = {i: number for number, i in enumerate(sorted(set(roots)))}
    return tuple(numbers[i] for i in roots)


def implied(box: Mapping[int, Interval], rows: Iterable[Row], names: Names) -> list[Bound]:
    """Bounds on single inputs implied by the rows that contain only inputs, and by the box.

    In sum c_j x_j <= limit, c_i x_i is at most the limit minus the minimum of the other terms. This
    is computed exactly and rounded outwards; a bound beyond the largest float64 is left out.
    """
    inputs = list(names.passed or ())
    about = [
        ({inputs[place - names.outputs]: Fraction(c) for place, c in row.terms}, row.limit)
        for row in rows
        if all(place >= names.outputs for place, _ in row.terms)
    ]
    ends = {i: (part.lower, part.upper) for i, part in box.items()}
    found: dict[tuple[int, bool], Bound] = {}
    for _ in range(_ROUNDS if about else 0):
        before = dict(ends)
        for terms, limit in about:
            for i, room in _rooms(terms, limit, ends):
                factor = terms[i]
                if abs(room / factor) > _LARGEST:
                    continue
                upper = factor > 0
                value, _ = outward(room / factor, up=upper)
                low, high = ends.get(i, _NO_ENDS)
                if value < high if upper else value > low:
                    found[i, upper] = Bound(i, upper, value, False, 0)
                    ends[i] = (low, value) if upper else (value, high)
        if ends == before:
            break
    return list(found.values())


def _rooms(
    terms: Mapping[int, Fraction], limit: float, ends: Mapping[int, tuple[float, float]]
) -> Iterator[tuple[int, Fraction]]:
    """Each input with the limit minus the minimum of the other terms, if they have a minimum."""
    least: dict[int, Fraction] = {}
    for i, factor in terms.items():
        end = ends.get(i, _NO_ENDS)[0 if factor > 0 else 1]
        if math.isfinite(end):
            least[i] = factor * Fraction(end)
    room = Fraction(limit) - sum(least.values())
    unbounded = terms.keys() - least.keys()
    if not unbounded:
        yield from ((i, room + own) for i, own in least.items())
    elif len(unbounded) == 1:
        yield unbounded.pop(), room
