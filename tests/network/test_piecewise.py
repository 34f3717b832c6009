"""Functions in pieces of lines have the values that they are made to have, at every place."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from fgp_vnn.network.onnx.piecewise import Function, absolute, added, chosen, line, scaled, sign

Exact = Callable[[Fraction], Fraction]


def _value(function: Function, place: Fraction) -> Fraction:
    own = [piece for piece in function if piece.start is None or piece.start <= place]
    return own[-1].value(place)


def _made(draw: random.Random, depth: int) -> tuple[Function, Exact]:
    """A random function, and the same by its definition."""
    if not depth or draw.random() < 0.2:
        a, b = draw.randint(-2, 2), Fraction(draw.randint(-4, 4), 2)
        return line(a, b), lambda x: a * x + b
    first, f = _made(draw, depth - 1)
    second, g = _made(draw, depth - 1)
    match draw.randrange(5):
        case 0:
            return absolute(first), lambda x: abs(f(x))
        case 1:
            return sign(first), lambda x: Fraction((f(x) > 0) - (f(x) < 0))
        case 2:
            return added(first, second), lambda x: f(x) + g(x)
        case 3:
            factor = draw.randint(-2, 2)
            return scaled(first, factor), lambda x: factor * f(x)
    by, h = _made(draw, depth - 1)
    level, equal = Fraction(draw.randint(-2, 2), 2), draw.random() < 0.5

    def choice(x: Fraction) -> Fraction:
        return f(x) if h(x) > level or (equal and h(x) == level) else g(x)

    return chosen(by, level, first, second, equal), choice


@pytest.mark.parametrize("seed", range(40))
def test_values_are_those_of_the_definition_also_where_pieces_begin(seed: int) -> None:
    function, exact = _made(random.Random(seed), 4)
    places = [Fraction(n, 8) for n in range(-40, 41)]
    places += [piece.start for piece in function if piece.start is not None]
    for place in places:
        assert _value(function, place) == exact(place)
