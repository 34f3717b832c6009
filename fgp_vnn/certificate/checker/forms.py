"""Affine forms: a tensor as an affine function of a map's sources.

A form has a block [n_s, *shape] for each source s: one tensor of coefficients for each number of
the source. The constant is the block of an extra source that holds the number 1. A linear operator
acts on all blocks alike.

Each block has sizes: the same computation with absolute values throughout. A block's computed
entries are off from the exact ones by at most gamma(steps) times their sizes (Higham, Accuracy and
Stability of Numerical Algorithms, section 3.1), where `steps` counts the roundings that a term
passes through. That leaves out underflow, so weights that might underflow are refused: a product of
a size of at least LEAST with a factor of at least LEAST_FACTOR is far from underflow, and the loss
of an entry smaller than its size is negligible beside the rounding of the size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import UnsupportedError

Array = NDArray[np.float64]
Constant = NDArray[Any]
Blocks = dict[int, Array]

ONE = -1  # the source that holds the number 1
LEAST, LEAST_FACTOR = 1e-220, 1e-70  # smallest nonzero size and factor
MOST_ENTRIES = 40_000_000  # of a form: about 600 MB with the sizes


@dataclass(frozen=True, eq=False)
class Form:
    """A tensor as an affine function of sources."""

    blocks: Blocks  # by source, [n_s, *shape]
    sizes: Blocks
    steps: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return next(iter(self.blocks.values())).shape[1:]


def source(number: int, shape: tuple[int, ...]) -> Form:
    """The form of a source itself: the identity."""
    count = prod(shape)
    if count * count > MOST_ENTRIES:
        raise UnsupportedError(f"a layer of {count:,} numbers is too large for the checker")
    block = np.eye(count).reshape(count, *shape)
    nothing = np.zeros((1, *shape))
    return Form({ONE: nothing, number: block}, {ONE: nothing, number: block})


def linear(form: Form, rule: Callable[[Array, bool], Array], steps: int = 0) -> Form:
    """Apply a linear rule to a form; the rule's second argument says whether to use absolute
    values."""
    blocks = {s: rule(block, False) for s, block in form.blocks.items()}
    return Form(blocks, {s: rule(b, True) for s, b in form.sizes.items()}, form.steps + steps)


def taken(form: Form, index: Constant, axis: int) -> Form:
    """The entries `index` along an axis."""
    return linear(form, lambda block, _: np.take(block, index, axis + 1))


def times(form: Form, factor: Constant, product: Callable[[Array, Array], Array], n: int) -> Form:
    """A product with constants, in which each result is a sum of n terms."""
    real = np.asarray(factor, dtype=np.float64)
    result = linear(form, lambda block, size: product(block, np.abs(real) if size else real), n)
    kept = [(LEAST, s) for part in (form, result) for s in part.sizes.values()]
    near = np.abs(real), 1 / np.abs(np.where(real == 0, 1.0, real))  # as a factor or a divisor
    for least, sizes in (*kept, *((LEAST_FACTOR, size) for size in near)):
        if ((sizes > 0) & (sizes < least)).any():
            raise UnsupportedError("products of weights so small that they might underflow")
    return result


def plus(left: Form, right: Form, sign: float = 1.0) -> Form:
    """left + sign * right, broadcast as in numpy."""
    shape = np.broadcast_shapes(left.shape, right.shape)

    def add(one: Blocks, other: Blocks, factor: float) -> Blocks:
        total = {s: np.broadcast_to(wide(b, shape), (len(b), *shape)) for s, b in one.items()}
        for s, block in other.items():
            part = np.broadcast_to(factor * wide(block, shape), (len(block), *shape))
            total[s] = total[s] + part if s in total else part
        return total

    blocks = add(left.blocks, right.blocks, sign)
    return Form(blocks, add(left.sizes, right.sizes, 1.0), max(left.steps, right.steps) + 1)


def joined(forms: Sequence[Form], axis: int) -> Form:
    """Concatenate forms along an axis."""
    shapes = [form.shape for form in forms]

    def join(parts: list[Blocks]) -> Blocks:
        result = {}
        for s in sorted({s for part in parts for s in part}):
            count = next(len(part[s]) for part in parts if s in part)
            filled = [p.get(s, np.zeros((count, *n))) for p, n in zip(parts, shapes, strict=True)]
            result[s] = np.concatenate(filled, axis + 1)
        return result

    blocks, sizes = join([form.blocks for form in forms]), join([form.sizes for form in forms])
    return Form(blocks, sizes, max(form.steps for form in forms))


def wide(block: Array, shape: tuple[int, ...]) -> Array:
    """The block with leading dimensions of size 1 added, so that its tensors have as many
    dimensions as `shape`."""
    missing = len(shape) - (block.ndim - 1)
    return block.reshape(len(block), *(1,) * missing, *block.shape[1:])


def by_matrix(block: Array, matrix: Array) -> Array:
    """block [..., n] @ matrix [n, m], computed as one product of two matrices; [..., m]."""
    flat = block.reshape(-1, block.shape[-1]) @ matrix
    return flat.reshape(*block.shape[:-1], matrix.shape[1])


def as_form(value: Form | Constant | None) -> Form:
    """The form itself, or the constant form of a tensor, of the same shape; raises UnsupportedError
    for a missing operand."""
    if isinstance(value, Form):
        return value
    if value is None:
        raise UnsupportedError("an operand is missing")
    block = np.asarray(value, dtype=np.float64)[None]
    return Form({ONE: block}, {ONE: np.abs(block)})
