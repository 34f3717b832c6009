"""The spelling of the two versions of VNN-LIB, and many ways to write the same text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

Random = np.random.Generator
# Text of comments that would have a meaning if the comment ended earlier.
DECOYS = (
    "a note",
    "(assert (<= Y_0 -1e30))",
    "(assert (or",
    ")",
    "; (assert",
    "\f(assert (= Y_0 9))",
)
LINE_ENDS = ("\n", "\r\n", "\r")
SPACES = (" ", "  ", "\t", "\n", "\r\n", "\r", " ;x\n", " ;x\r\n", " ;x\r", "\f", "\v")


@dataclass(frozen=True)
class Dialect:
    """One version of the standard."""

    input: Callable[[int], str]
    output: Callable[[int], str]
    equal: str
    exponents: bool
    second: bool

    def head(self, random: Random, inputs: int, outputs: int) -> str:
        if self.second:
            declared = f"(declare-input X Real [{inputs}]) (declare-output Y Real [{outputs}])"
            return f"(vnnlib-version <2.0>)\n(declare-network N {declared})\n"
        names = [f"X_{i}" for i in range(inputs)] + [f"Y_{i}" for i in range(outputs)]
        return "".join(f"(declare-const {name} Real){line_end(random)}" for name in names)


FIRST = Dialect(lambda i: f"X_{i}", lambda i: f"Y_{i}", "=", True, False)
SECOND = Dialect(lambda i: f"X[{i}]", lambda i: f"Y[{i}]", "==", False, True)


def line_end(random: Random) -> str:
    """A line feed, or a comment with one of the line endings."""
    if random.random() < 0.7:
        return "\n"
    return f" ; {random.choice(DECOYS)}{random.choice(LINE_ENDS)}"


def literal(random: Random, value: float, dialect: Dialect) -> str:
    """A float64 in one of several spellings that all read as the same float64."""
    value = float(value)
    plain = format(Decimal(repr(value)), "f")
    if "." not in plain:
        plain += ".0"
    kind = random.integers(7)
    if dialect.exponents and kind == 0:
        return f"{value:.17e}"
    if dialect.exponents and kind == 1:
        return f"{value!r}".replace("e", "E")
    if kind == 2:
        return plain + "0" * int(random.integers(1, 30))
    if kind == 3:
        longest = format(Decimal(value), "f")
        return longest if "." in longest else plain
    if kind == 4 and dialect.exponents and value == int(value) and abs(value) < 1e15:
        return str(random.choice([f"{int(value)}", f"{int(value)}."]))
    return repr(value) if dialect.exponents and kind == 5 else plain


def separated(random: Random, text: str, dialect: Dialect) -> bytes:
    """The text with some of its spaces replaced by equivalent separators."""
    spaces = SPACES[: 7 if dialect.second else len(SPACES)]
    often = float(random.choice([0.0, 0.02, 0.3]))

    def space(match: re.Match[str]) -> str:
        return str(random.choice(spaces)) if random.random() < often else match[0]

    pieces = re.split(r"(;[^\r\n]*(?:\r\n|\r|\n))", text)
    return "".join(p if p.startswith(";") else re.sub(" ", space, p) for p in pieces).encode()
