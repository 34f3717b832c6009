"""Constraints between inputs: which of these are the same, and what bounds constraints imply."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Protocol

from fgp_vnn.property.formula import Bound, Names, Row, outward

_ROUNDS = 8  # a chain of so many constraints between inputs without bounds is followed


class Interval(Protocol):
    """The values that an input may have."""

    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...


def shared(count: int, pairs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Numbers from 0 on for so many inputs, in their order: one number for those that are equal,
    given in pairs."""
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
    """Bounds on single inputs that follow from rows about inputs alone and the others' bounds.

    In sum c_j x_j <= limit, c_i x_i is at most the limit less the least that the others can be;
    computed exactly, and rounded outwards.
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
            for i, factor in terms.items():
                others = {j: c for j, c in terms.items() if j != i}
                room = _room(others, limit, ends)
                if room is None:
                    continue
                upper = factor > 0
                value, _ = outward(room / factor, up=upper)
                low, high = ends.get(i, (-math.inf, math.inf))
                if value < high if upper else value > low:
                    found[i, upper] = Bound(i, upper, value, False, 0)
                    ends[i] = (low, value) if upper else (value, high)
        if ends == before:
            break
    return list(found.values())


def _room(
    terms: Mapping[int, Fraction], limit: float, ends: Mapping[int, tuple[float, float]]
) -> Fraction | None:
    """The limit less the least value of the terms; None where they have none."""
    room = Fraction(limit)
    for j, factor in terms.items():
        end = ends.get(j, (-math.inf, math.inf))[0 if factor > 0 else 1]
        if math.isinf(end):
            return None
        room -= factor * Fraction(end)
    return room
