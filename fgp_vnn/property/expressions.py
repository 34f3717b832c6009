"""Properties in Python: variables, linear expressions of them, and conditions.

    x, y = space_variables(Space((1, 784), (1, 10)))
    inside = (lower <= x) & (x <= upper)
    unsafe = (y[0, 1] >= y[0, 0]) | (y[0, 2] > 3.5)

Arithmetic is exact: a float stands for its exact value, and results are rational numbers.
Comparing arrays gives a condition on all of their entries; `.any()` requires only one to meet it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError
from fgp_vnn.property.conditions import Condition, Space
from fgp_vnn.property.formula import Bound, Formula, Linear, Names, comparison
from fgp_vnn.property.numbers import Numbers, exact_numbers, objects, to_numpy
from fgp_vnn.property.shown import show_sum


def space_variables(space: Space) -> tuple[Expression, Expression]:
    """The inputs and outputs of a network, as arrays in the network's shapes."""
    x = np.arange(math.prod(space.input_shape)).reshape(space.input_shape)
    y = x.size + np.arange(math.prod(space.output_shape)).reshape(space.output_shape)
    return Expression(space, numbers=x), Expression(space, numbers=y)


class Expression:
    """An array of linear expressions of the variables of a space."""

    __array_ufunc__ = None  # numpy leaves operators to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        space: Space,
        *,
        numbers: NDArray[np.int64] | None = None,
        entries: NDArray[np.object_] | None = None,
    ) -> None:
        self.space = space
        self._numbers = numbers  # of the variables, if every entry is a single variable
        self._entries = entries  # a `Linear` each; None until needed if `numbers` is given

    @property
    def entries(self) -> NDArray[np.object_]:
        """A `Linear` for each entry."""
        if self._entries is None:
            assert self._numbers is not None
            made = [Linear({int(v): Fraction(1)}) for v in self._numbers.ravel()]
            self._entries = objects(made, self._numbers.shape)
        return self._entries

    @property
    def shape(self) -> tuple[int, ...]:
        array = self._numbers if self._numbers is not None else self._entries
        assert array is not None
        return tuple(array.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single expression has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Expression]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Expression:
        if self._numbers is not None:
            return Expression(self.space, numbers=np.asarray(self._numbers[index]))
        part = self.entries[index]
        part = part if isinstance(part, np.ndarray) else objects([part], ())
        return Expression(self.space, entries=part)

    def reshape(self, *shape: Any) -> Expression:
        """The same entries in another shape, in C order."""
        if self._numbers is not None:
            return Expression(self.space, numbers=self._numbers.reshape(*shape))
        return Expression(self.space, entries=self.entries.reshape(*shape))

    def flatten(self) -> Expression:
        return self.reshape(-1)

    def sum(self) -> Expression:
        """The sum of all entries."""
        total = Linear.sum((entry, 1) for entry in self.entries.ravel())
        return Expression(self.space, entries=objects([total], ()))

    def __neg__(self) -> Expression:
        return self * -1

    def __add__(self, other: Any) -> Expression:
        return self._combine(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Expression:
        return self._combine(other, -1)

    def __rsub__(self, other: Any) -> Expression:
        return (-self)._combine(other, 1)

    def __mul__(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            raise InputError("a product of two variables is not linear")
        return self._scaled(exact_numbers(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Expression:
        if isinstance(other, Expression):
            raise InputError("a quotient of two variables is not linear")
        divisors = exact_numbers(other)
        if not all(divisors.ravel()):
            raise InputError("division by zero")
        inverse = [1 / value for value in divisors.ravel()]
        return self._scaled(objects(inverse, divisors.shape))

    def __rmatmul__(self, matrix: Any) -> Expression:
        """matrix @ expression, for a vector of expressions."""
        rows = exact_numbers(matrix)
        if len(self.shape) != 1 or rows.ndim not in (1, 2) or rows.shape[-1] != self.size:
            raise InputError(f"shapes {rows.shape} and {self.shape} do not fit a matrix product")
        sums = [(self * row).sum().entries[()] for row in rows.reshape(-1, self.size)]
        return Expression(self.space, entries=objects(sums, rows.shape[:-1]))

    def __matmul__(self, vector: Any) -> Expression:
        return exact_numbers(vector).T @ self  # type: ignore[no-any-return]

    def __le__(self, other: Any) -> Condition:
        return self._compare("<=", other)

    def __lt__(self, other: Any) -> Condition:
        return self._compare("<", other)

    def __ge__(self, other: Any) -> Condition:
        return self._compare(">=", other)

    def __gt__(self, other: Any) -> Condition:
        return self._compare(">", other)

    def __eq__(self, other: Any) -> Condition:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Any) -> Condition:  # type: ignore[override]
        return self._compare("!=", other)

    def __repr__(self) -> str:
        if self.shape:
            return f"<{self.size} linear expressions of shape {self.shape}>"
        only: Linear = self.entries.item()
        name = self.space.names.name
        terms = [(name(v), float(c)) for v, c in only.without_zeros().items()]
        return f"<expression: {show_sum(terms, float(only.constant))}>"

    def _scaled(self, factors: Numbers) -> Expression:
        left, right = np.broadcast_arrays(self.entries, factors)
        made = [entry.times(f) for entry, f in zip(left.ravel(), right.ravel(), strict=True)]
        return Expression(self.space, entries=objects(made, left.shape))

    def _combine(self, other: Any, sign: int) -> Expression:
        left, right = _broadcast(self.entries, self._entries_of(other))
        pairs = zip(left.ravel(), right.ravel(), strict=True)
        made = [Linear.sum([(entry, 1), (added, sign)]) for entry, added in pairs]
        return Expression(self.space, entries=objects(made, left.shape))

    def _entries_of(self, other: Any) -> NDArray[np.object_]:
        """Entries of another expression about the same network, or of numbers as constants."""
        if isinstance(other, Expression):
            if other.space != self.space:
                raise InputError("the two expressions are about different networks")
            return other.entries
        numbers = exact_numbers(other)
        made = [Linear(constant=value) for value in numbers.ravel()]
        return objects(made, numbers.shape)

    def _compare(self, sign: str, other: Any) -> Condition:
        names = self.space.names
        quick = self._bounds(sign, other, names)
        if quick is not None:
            return Condition(self.space, quick)
        left, right = _broadcast(self.entries, self._entries_of(other))
        pairs = zip(left.ravel(), right.ravel(), strict=True)
        return Condition(self.space, tuple(comparison(sign, a, b, names, 0) for a, b in pairs))

    def _bounds(self, sign: str, other: Any, names: Names) -> tuple[Formula, ...] | None:
        """Fast path for inputs compared with floats, the most common case: bounds without
        fractions. None if it does not apply."""
        if self._numbers is None or sign in ("==", "!=") or isinstance(other, Expression):
            return None
        try:
            values = np.asarray(to_numpy(other))
            if values.dtype.kind != "f" or values.dtype.itemsize > 8:
                return None
            places, limits = np.broadcast_arrays(self._numbers, values.astype(np.float64))
        except ValueError:
            return None
        if not (places < names.inputs).all() or not np.isfinite(limits).all():
            return None
        upper, strict = sign[0] == "<", len(sign) == 1
        pairs = zip(places.ravel().tolist(), limits.ravel().tolist(), strict=True)
        return tuple(Bound(place, upper, limit, strict, 0) for place, limit in pairs)


def _broadcast(
    left: NDArray[np.object_], right: NDArray[np.object_]
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    try:
        first, second = np.broadcast_arrays(left, right)
    except ValueError:
        raise InputError(f"shapes {left.shape} and {right.shape} do not fit together") from None
    return first, second
