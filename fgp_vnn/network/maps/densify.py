"""The dense matrices of an affine map that is given as a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.model import Dense

_CHUNK_ENTRIES = 4_000_000
_LARGE = 2.0**300


def as_dense(operator: Operator) -> Dense:
    """The matrices of an operator, with `terms` unless every entry is one term without rounding."""
    weights = _matrices(operator, operator.linear)
    copied = Dense(operator.sources, weights, operator.bias)
    if operator.exact and all(bool((part <= 1).all()) for part in _sizes(operator.counting())):
        return copied
    # An entry is rounded as often as the program rounds, and loses as much to underflow.
    size = unit(operator.bias.dtype)
    one = [operator.bias.new_ones(prod(shape)) for shape in operator.shapes]
    grain = operator.underflows(one).forward * (size.underflow / size.eps)
    terms = tuple(part + grain for part in _sizes(operator))
    return replace(copied, terms=terms, rounded=operator.operations)


def _sizes(operator: Operator) -> tuple[Tensor, ...]:
    """Sums of the terms' absolute values: one matrix per source, then a vector for the bias.

    A magnitude contains the bias's terms, of which hardly anything is left in a matrix entry when
    the sources are large. A difference of two magnitudes would lose the entry beside a large bias.
    """

    def apply(values: Sequence[Tensor]) -> Tensor:
        return operator.magnitude([_LARGE * value for value in values]) / _LARGE

    offset = operator.magnitude([operator.bias.new_zeros(prod(s)) for s in operator.shapes])
    return *_matrices(operator, apply), offset


def _matrices(
    operator: Operator, apply: Callable[[Sequence[Tensor]], Tensor]
) -> tuple[Tensor, ...]:
    """One matrix [outputs, n_s] per source, by applying the map to each unit vector; an entry that
    is a single weight is copied exactly."""
    weights = []
    sizes = [prod(shape) for shape in operator.shapes]
    for which, size in enumerate(sizes):
        columns = []
        for units in _identity(size, max(size, operator.outputs)):
            values = [units if s == which else units.new_zeros(1, n) for s, n in enumerate(sizes)]
            columns.append(apply(values))
        weights.append(torch.cat(columns).T.contiguous())
    return tuple(weights)


def _identity(size: int, width: int) -> Iterator[Tensor]:
    """The rows of the identity matrix, in chunks that bound memory."""
    step = max(1, _CHUNK_ENTRIES // width)
    for start in range(0, size, step):
        stop = min(size, start + step)
        units = torch.zeros(stop - start, size, dtype=torch.float64)
        units[:, start:stop] = torch.eye(stop - start, dtype=torch.float64)
        yield units
