"""Piecewise-linear functions of one variable, in exact fractions.

At the start of a piece, the function's value may be that of the line before, of its own line, or
neither.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple


class LinearPiece(NamedTuple):
    """A line from its start up to the start of the next piece."""

    start: Fraction | None  # None: from -infinity
    slope: Fraction
    offset: Fraction
    begins: Fraction | None = None  # the function's value at the start; None: that of the line

    def at(self, place: Fraction) -> Fraction:
        """The line's value at a place."""
        return self.slope * place + self.offset

    def value(self, place: Fraction) -> Fraction:
        """The function's value at a place of the piece."""
        return self.at(place) if self.begins is None or place != self.start else self.begins

    def times(self, factor: int | Fraction, more: int | Fraction = 0) -> LinearPiece:
        """The piece times `factor`, plus `more`."""
        begins = None if self.begins is None else factor * self.begins + more
        return LinearPiece(self.start, factor * self.slope, factor * self.offset + more, begins)


Function = list[LinearPiece]


def line(slope: int, offset: int | Fraction) -> Function:
    """A function of one piece."""
    return [LinearPiece(None, Fraction(slope), Fraction(offset))]


def scaled(function: Function, factor: int | Fraction) -> Function:
    """A function times `factor`."""
    return [piece.times(factor) for piece in function]


def added(first: Function, second: Function) -> Function:
    """The sum of two functions."""
    return _combined(
        (first, second),
        lambda place, lines: LinearPiece(
            None, lines[0].slope + lines[1].slope, lines[0].offset + lines[1].offset
        ),
    )


def absolute(function: Function) -> Function:
    """The absolute value of a function."""
    return _combined(
        (function,),
        lambda place, lines: lines[0].times(-1 if lines[0].at(place) < 0 else 1),
        _crossings(function, Fraction(0)),
    )


def sign(function: Function) -> Function:
    """1 where the function is positive, -1 where it is negative, and 0 elsewhere."""

    def of(place: Fraction, lines: Sequence[LinearPiece]) -> LinearPiece:
        value = lines[0].at(place)
        return lines[0].times(0, (value > 0) - (value < 0))

    return _combined((function,), of, _crossings(function, Fraction(0)))


def chosen(
    by: Function, level: Fraction, above: Function, below: Function, equal: bool
) -> Function:
    """The function `above` where by > level, or by >= level if `equal`, and `below` elsewhere."""

    def of(place: Fraction, lines: Sequence[LinearPiece]) -> LinearPiece:
        value = lines[0].at(place)
        return lines[1] if value > level or (equal and value == level) else lines[2]

    return _combined((by, above, below), of, _crossings(by, level))


def _crossings(function: Function, level: Fraction) -> Collection[Fraction]:
    """The places where the line of a piece, extended to both sides, has the value `level`."""
    return {(level - piece.offset) / piece.slope for piece in function if piece.slope}


def _combined(
    functions: Sequence[Function],
    make: Callable[[Fraction, Sequence[LinearPiece]], LinearPiece],
    places: Collection[Fraction] = (),
) -> Function:
    """Combine functions by `make`, between and at their starts and the given places.

    Between neighbouring places, `make` gets a place in between and the functions' lines there. At
    each place, it gets the functions' values, as flat lines.
    """
    starts = {p.start for function in functions for p in function if p.start is not None}
    order = sorted({*starts, *places})
    result: Function = []
    for start, place in zip([None, *order], _between(order), strict=True):
        found = make(place, [_at(function, place) for function in functions])
        piece = LinearPiece(start, found.slope, found.offset)
        if start is not None:
            values = (_at(function, start).value(start) for function in functions)
            flat = [LinearPiece(None, Fraction(0), value) for value in values]
            begins = make(start, flat).at(start)
            piece = piece._replace(begins=None if begins == piece.at(start) else begins)
        if not result or piece[1:] != (*result[-1][1:3], None):
            result.append(piece)
    return result


def _between(order: Sequence[Fraction]) -> Iterator[Fraction]:
    """A place before the first, one between each and the next, and one after the last."""
    if not order:
        yield Fraction(0)
        return
    yield order[0] - 1
    yield from ((a + b) / 2 for a, b in pairwise(order))
    yield order[-1] + 1


def _at(function: Function, place: Fraction) -> LinearPiece:
    return [piece for piece in function if piece.start is None or piece.start <= place][-1]
