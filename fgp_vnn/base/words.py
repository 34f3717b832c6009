"""Words and numbers that messages, options and files of several packages share."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal, get_args

Version = Literal["1.0", "2.0"]  # of VNN-LIB
VERSIONS: tuple[Version, ...] = get_args(Version)

NO_CERTIFICATE = "no certificate"  # beginning of the reason of an unsat without its proof


def real_number(text: str) -> float:
    """Read a number, or a fraction such as 8/255; raises ValueError or ZeroDivisionError."""
    over, slash, under = text.partition("/")
    return float(over) / float(under) if slash else float(text)


def plural(number: int, noun: str, several: str = "") -> str:
    """A number with its noun: `1 point`, `2 points`; `several` is a plural that does not end in the
    singular and s."""
    return f"{number} {noun}" if number == 1 else f"{number} {several or noun + 's'}"


def either(names: Iterable[str]) -> str:
    """The names in a sentence: `a`, `a or b`, `a, b or c`."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def suggestion(name: str, known: Iterable[str]) -> str:
    """A hint such as "; did you mean 'x'?" for an unknown name; empty if no name is close."""
    close = get_close_matches(name, list(known), 1, cutoff=0.7)
    return f"; did you mean {close[0]!r}?" if close else ""
