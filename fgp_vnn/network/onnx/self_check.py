"""Checks of loaded maps against the converted graph, in float64.

The comparison with onnxruntime runs maps forward only, and allows for the rounding of float32,
which hides mistakes beside large numbers. So each matrix is compared with the part of the graph
that it stands for, and the adjoint of each program, which comes from rules and from torch, with the
program itself. These comparisons allow for the rounding of float64 only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

from fgp_vnn.base.draws import Draws
from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.base.rounding import unit
from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.model import AffineMap, Dense

_ROWS = 2  # random values, and rows to pull back
_LARGE = 2.0**100  # of the values: hardly anything of the allowed error is that of the offsets


def check_matrix(found: Dense, graph: Callable[[Sequence[Tensor]], Tensor]) -> None:
    """Refuse a matrix if `graph` gives another result [outputs] for random values [n_s]."""
    values = [value[0] for value in _values(found, [w.shape[1] for w in found.weights])]
    off = (found(values) - graph(values)).abs()
    if bool((off > _allowed(found, values, 0)).any()):
        raise UnsupportedError(
            f"a matrix of the network, which reads {_named(found)}, differs from the file's "
            "operators: this is a mistake of fgp_vnn, please report it"
        )


def check_adjoint(found: Operator, watch: Callable[[], None] = lambda: None) -> None:
    """Refuse a program A if <A v, r> = <v, A' r> fails for random v and r; `watch` is called before
    the adjoint is run, and after it."""
    values = _values(found, [prod(shape) for shape in found.shapes])
    rows = _random(found.bias, found.outputs, 7)
    forward = (found.linear(values) * rows).sum(-1)
    watch()
    pairs = zip(values, found.adjoint(rows), strict=True)
    backward = torch.stack([(value * pulled).sum(-1) for value, pulled in pairs]).sum(0)
    watch()
    allowed = _allowed(found, values, found.outputs) * rows.abs()
    if bool(((forward - backward).abs() > allowed.sum(-1)).any()):
        raise UnsupportedError(
            f"a part of the network, which reads {_named(found)} and is too large for a matrix, "
            "is differentiated wrongly by this version of torch"
        )


def _values(found: AffineMap, sizes: Sequence[int]) -> list[Tensor]:
    return [_LARGE * _random(found.bias, size, seed) for seed, size in enumerate(sizes)]


def _random(like: Tensor, size: int, seed: int) -> Tensor:
    """Numbers [rows, size] between -1 and 1."""
    return (2 * Draws(seed).uniform(_ROWS, size) - 1).to(like)


def _allowed(found: AffineMap, values: Sequence[Tensor], more: int) -> Tensor:
    """Upper bound on the differences that rounding makes, with so many roundings `more`."""
    read = sum(value.shape[-1] for value in values)
    share = unit(found.bias.dtype).share(found.operations + read + more + 8)
    return 4 * share * found.magnitude([value.abs() for value in values])


def _named(found: AffineMap) -> str:
    return " and ".join("the input" if s == 0 else f"layer {s}" for s in found.sources)
