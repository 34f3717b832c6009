"""Evaluate the text of a property at one point in rational numbers.

Independent of the verifier's parser: tokens, lists, and a recursion over them. A literal means its
nearest float64. A comment ends at a line feed or at a carriage return, as in SMT-LIB.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Point = Sequence[Fraction]

_COMMENT = re.compile(rb";[^\r\n]*")
_TOKEN = re.compile(r"[()]|[^ \t\r\n\f\v()]+")
_VARIABLE = re.compile(r"([XY])(?:_(\d+)|\[([\d,]+)\])")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Formula:
    """The assertions of a file; (x, y) breaks the property if all of them hold."""

    assertions: tuple[Any, ...]
    shapes: dict[str, tuple[int, ...]]  # of X and Y in version 2.0

    @classmethod
    def of(cls, text: bytes) -> Formula:
        lists = list(_lists(_TOKEN.findall(_COMMENT.sub(b"", text).decode("ascii"))))
        shapes = {}
        for network in (part for part in lists if part[0] == "declare-network"):
            for part in network[2:]:
                shapes[part[1]] = tuple(int(n) for n in part[3].strip("[]").split(",") if n)
        return cls(tuple(part[1] for part in lists if part[0] == "assert"), shapes)

    def holds(self, x: Point, y: Point) -> bool:
        return all(self._truth(part, x, y) for part in self.assertions)

    def gaps(self, x: Point, y: Point) -> list[Fraction]:
        """Left side minus right side of every comparison, in the order of the text."""
        return [
            self._value(left, x, y) - self._value(right, x, y)
            for _, left, right in _comparisons(self.assertions)
        ]

    def _truth(self, part: Any, x: Point, y: Point) -> bool:
        head, *rest = part
        if head == "and":
            return all(self._truth(p, x, y) for p in rest)
        if head == "or":
            return any(self._truth(p, x, y) for p in rest)
        left, right = (self._value(p, x, y) for p in rest)
        return _COMPARE[head](left, right)

    def _value(self, part: Any, x: Point, y: Point) -> Fraction:
        if isinstance(part, str):
            return self._symbol(part, x, y)
        head, *rest = part
        values = [self._value(p, x, y) for p in rest]
        if head == "+":
            return sum(values, Fraction(0))
        if head == "*":
            return math.prod(values, start=Fraction(1))
        if head == "/":
            return values[0] / values[1]
        if head == "-":
            return -values[0] if len(values) == 1 else values[0] - sum(values[1:], Fraction(0))
        raise ValueError(f"{head!r} is not an operation")

    def _symbol(self, symbol: str, x: Point, y: Point) -> Fraction:
        match = _VARIABLE.fullmatch(symbol)
        if match is None:
            return Fraction(float(symbol))
        if match[2] is not None:
            index = int(match[2])
        else:
            index = 0
            for at, size in zip(match[3].split(","), self.shapes[match[1]], strict=True):
                index = index * size + int(at)
        return (x if match[1] == "X" else y)[index]


def _lists(tokens: list[str]) -> Iterator[list[Any]]:
    stack: list[list[Any]] = []
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            if stack:
                stack[-1].append(done)
            else:
                yield done
        else:
            stack[-1].append(token)


def _comparisons(parts: Sequence[Any]) -> Iterator[Any]:
    for part in parts:
        if part[0] in _COMPARE:
            yield part
        else:
            yield from _comparisons(part[1:])
