"""Write a property as VNN-LIB text, 1.0 or 2.0, that reads back as the same set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.base.words import VERSIONS, Version
from fgp_vnn.property.model import Array, Case, Conjunction, Property, Variable

_TINY = float(np.finfo(np.float64).tiny)
_SHIFT = 2.0**600  # scales subnormal numbers to normal ones


def write_property(
    path: str | Path, prop: Property, *, version: Version = "1.0", title: str = ""
) -> None:
    """Write the file atomically; `title` becomes a comment."""
    text = format_property(prop, version=version, title=title)
    write_bytes(path, text.encode("ascii"), "property")


def format_property(prop: Property, *, version: Version = "1.0", title: str = "") -> str:
    """The property as VNN-LIB text.

    In 1.0 the variables are X_i and Y_i. In 2.0 they are the property's own, or else X and Y.
    """
    if version not in VERSIONS:
        raise InputError(f"version is {version!r}; it must be one of {', '.join(VERSIONS)}")
    writer = _Writer(prop, version)
    comment = "".join(
        f"; {line}\n" for line in title.encode("ascii", "replace").decode().split("\n")
    )
    return f"{writer.head(comment if title else '')}\n{writer.body()}"


class _Writer:
    """The variable names of a VNN-LIB version, and the text of formulas over them."""

    def __init__(self, prop: Property, version: Version) -> None:
        if prop.joint is not None:
            raise UnsupportedError("properties of joint networks are not written")
        self.prop, self.version = prop, version
        self.inputs = prop.input_variables or (Variable("X", "Real", (prop.inputs,)),)
        self.outputs = prop.output_variables or (Variable("Y", "Real", (prop.outputs,)),)
        if version == "1.0":
            self.x = [f"X_{i}" for i in range(prop.inputs)]
            self.y = [f"Y_{i}" for i in range(prop.outputs)]
        else:
            self.x, self.y = list(_elements(self.inputs)), list(_elements(self.outputs))

    def head(self, comment: str) -> str:
        if self.version == "1.0":
            lines = [f"(declare-const {name} Real)" for name in (*self.x, *self.y)]
            return comment + ("\n" if comment else "") + "\n".join(lines) + "\n"
        kinds = [("input", v) for v in self.inputs] + [("output", v) for v in self.outputs]
        lines = [
            f"    (declare-{kind} {v.name} {v.type} [{','.join(map(str, v.shape))}])"
            for kind, v in kinds
        ]
        declared = "\n".join(["(declare-network N", *lines, ")"])
        return f"(vnnlib-version <2.0>)\n{comment}\n{declared}\n"

    def body(self) -> str:
        """The asserts: boxes and unsafe set separately if all cases have the same unsafe set."""
        cases = [case for case in self.prop.cases if case.unsafe]
        if not cases:
            return self._nothing()
        if any(_key(case.unsafe) != _key(cases[0].unsafe) for case in cases[1:]):
            return _either(
                [*self._box(case), *self._rows(part)] for case in cases for part in case.unsafe
            )
        boxes = [list(self._box(case)) for case in cases]
        inputs = _all(boxes[0]) if len(boxes) == 1 else _either(boxes)
        parts = [list(self._rows(part)) for part in cases[0].unsafe]
        if any(not part for part in parts):
            return inputs  # every output is unsafe
        return f"{inputs}\n{_all(parts[0]) if len(parts) == 1 else _either(parts)}"

    def _nothing(self) -> str:
        """Asserts that no input meets."""
        bounds = [f"({sign} {name} {_number(0.0)})" for name in self.x for sign in (">=", "<=")]
        return _all([*bounds, f"(>= {self.x[0]} {_number(1.0)})"])

    def _box(self, case: Case) -> Iterator[str]:
        none = np.zeros(len(self.x), dtype=bool)
        lower_open = none if case.open_lower is None else case.open_lower
        upper_open = none if case.open_upper is None else case.open_upper
        columns = (case.lower, case.upper, lower_open, upper_open)
        for name, *entry in zip(self.x, *(column.tolist() for column in columns), strict=True):
            low, high, above, below = entry
            yield f"({'>' if above else '>='} {name} {_number(low)})"
            yield f"({'<' if below else '<='} {name} {_number(high)})"

    def _rows(self, part: Conjunction) -> Iterator[str]:
        for index, row in enumerate(part.rows):
            limit, strict = part.limit(index)
            yield self._row(row, limit, "<" if strict else "<=")

    def _row(self, row: Array, limit: Fraction, sign: str) -> str:
        """sum of terms <= limit, or the short form y_j >= y_i if the row says just that."""
        places = np.flatnonzero(row).tolist()
        if not limit and sorted(row[places].tolist()) == [-1.0, 1.0]:
            less, more = sorted(places, key=lambda i: -row[i])
            return f"({sign.replace('<', '>')} {self.y[more]} {self.y[less]})"
        # A limit such as 1/3 is no finite sum of floats: scale the row so that it becomes one.
        scale = limit.denominator // (limit.denominator & -limit.denominator)  # the odd part
        terms = [self._term(float(row[i]), i, scale) for i in places]
        left = terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"
        if not terms:
            left = _number(0.0)
        return f"({sign} {left} {_constant(limit * scale)})"

    def _term(self, coefficient: float, output: int, scale: int) -> str:
        factors = [_constant(Fraction(scale))] if scale != 1 else []
        factors += [_number(coefficient)] if coefficient != 1.0 else []
        name = self.y[output]
        return f"(* {' '.join(factors)} {name})" if factors else name


def _elements(variables: Iterable[Variable]) -> Iterator[str]:
    """The names of all elements in C order."""
    for variable in variables:
        for index in np.ndindex(*variable.shape):
            yield f"{variable.name}[{','.join(map(str, index))}]" if index else variable.name


def _key(unsafe: tuple[Conjunction, ...]) -> list[object]:
    return [
        (c.rows.tobytes(), c.limits.tobytes(), c.strict.tobytes(), sorted(c.written.items()))
        for c in unsafe
    ]


def _all(conditions: Iterable[str]) -> str:
    return "".join(f"(assert {condition})\n" for condition in conditions)


def _either(alternatives: Iterable[list[str]]) -> str:
    lines = "".join(f"    (and {' '.join(conditions)})\n" for conditions in alternatives)
    return f"(assert (or\n{lines}))\n"


def _number(value: float) -> str:
    """Digits without an exponent whose nearest float64 is the value.

    The standard's package refuses subnormal numbers, so they are written as products.
    """
    if 0 < abs(value) < _TINY:
        return f"(* {_number(value * _SHIFT)} {_number(1 / _SHIFT)})"
    return np.format_float_positional(value, unique=True, trim="0")


def _constant(value: Fraction) -> str:
    """A fraction whose denominator is a power of two, as a sum of floats."""
    parts = []
    try:
        while value:
            parts.append(float(value))
            if not parts[-1]:
                raise OverflowError
            value -= Fraction(parts[-1])
    except OverflowError:
        raise UnsupportedError("a constant is too large or too fine for float64") from None
    if not parts:
        return _number(0.0)
    return _number(parts[0]) if len(parts) == 1 else f"(+ {' '.join(map(_number, parts))})"
