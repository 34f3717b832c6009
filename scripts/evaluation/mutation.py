"""A mutation: a small change that makes the package unsound, and the tests that must notice it.

A change is written as a piece of text with a mark, such as `return t⟦ * t → ⟧`: the original,
`return t * t`, has to occur exactly once in its file, and is replaced by `return t`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Tested = tuple[str, tuple[str, ...]]  # a file of the package, and tests in tests/
Change = tuple[str, Tested, str]  # name, file and tests, marked text


class Mutation(NamedTuple):
    """One change to a file of the package."""

    name: str
    file: str  # in the package
    old: str
    new: str
    tests: tuple[str, ...]  # files in tests/, or single tests of these

    @classmethod
    def of(cls, name: str, place: Tested, marked: str) -> Mutation:
        """The mutation that a change describes."""
        before, change, after = re.split("[⟦⟧]", marked)
        old, new = change.split(" → ")
        file, tests = place
        return cls(name, file, before + old + after, before + new + after, tests)


def tested(file: str, *tests: str) -> Tested:
    """A file of the package with the tests that have to notice changes to it, such as
    `search/test_clipping::limits_are_rounded_outwards`, or all of `search/test_clipping`."""
    pairs = [test.partition("::") for test in tests]
    return file, tuple(f"{path}.py" + (name and f"::test_{name}") for path, _, name in pairs)
