"""The same query with fewer inputs, without loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.domain.sets import Box, Domain, L2Ball
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.query import Query


@dataclass(frozen=True, eq=False)
class Lift:
    """The map from a reduced input t back to the network's own input x."""

    origin: Tensor  # [inputs]
    basis: Tensor | None = None  # [inputs, reduced]: x = origin + basis @ t
    kept: Tensor | None = None  # [reduced]: x[kept] = t, the other inputs as in origin

    def __call__(self, points: Tensor) -> Tensor:
        """x [..., inputs] at t [..., reduced], in the precision of the network's own input."""
        points = points.to(self.origin.dtype)
        if self.basis is not None:
            return self.origin + points.to(self.basis.dtype) @ self.basis.T
        if self.kept is None:
            return points
        x = self.origin.expand(*points.shape[:-1], -1).clone()
        x[..., self.kept] = points.to(x.dtype)
        return x


def reduce_inputs(query: Query) -> tuple[Query, Lift]:
    """Remove the fixed inputs of a box, or rotate an l2 ball into the subspace the network reads.

    A box loses its coordinates of width zero. For an l2 ball, let the columns of Q be an
    orthonormal basis of the row space of the maps that read the input: W(x - c) depends only on
    t = Q^T (x - c), and the image of the ball under Q^T is the ball of the same radius. The
    remainder W - W Q Q^T, which is rounding error, becomes part of the map's defect.
    """
    domain, reduced = query.domain, None
    if isinstance(domain, Box):
        kept = torch.nonzero(domain.upper > domain.lower).flatten()
        inner = Box(domain.lower[kept], domain.upper[kept])
        reduced = fix_inputs(query, kept, domain.lower, inner)
    elif isinstance(domain, L2Ball) and (space := row_space(query.network)) is not None:
        reduced = space.restrict(query, domain)
    return reduced or (query, Lift(domain.center))


def fix_inputs(
    query: Query, kept: Tensor, values: Tensor, domain: Domain
) -> tuple[Query, Lift] | None:
    """The query on the inputs `kept` [reduced] over `domain`, with all others fixed at `values`
    [inputs]; None if none or all are kept, or a map that reads the input is no plain matrix."""
    moves = torch.zeros_like(values, dtype=torch.bool).index_fill(0, kept, True)
    fixed = torch.nonzero(~moves).flatten()
    if not len(kept) or not len(fixed):
        return None
    if not all(_is_plain(m) for m in query.network.maps if 0 in m.sources):
        return None

    def restrict(reader: Dense) -> Dense:
        weight = _input_weight(reader)
        value, size = values[fixed], values[fixed].abs()
        bias = reader.bias + weight[:, fixed] @ value
        terms = reader.bias.abs() + weight[:, fixed].abs() @ size
        size_of = unit(terms.dtype)
        small = 2 * len(fixed) + 4 + size.sum() + weight[:, fixed].abs().sum(-1)
        rounding = size_of.share(len(fixed) + 4) * terms + size_of.underflow * small
        return _replace_input(reader, weight[:, kept], bias, rounding)

    return _rebuild(query, restrict, domain, len(kept)), Lift(values, kept=kept)


def drop_unread(query: Query) -> Query:
    """The query without the inputs of a box that no map reads: it has the same bounds, but its
    points cannot be mapped back to the original input."""
    readers, box = [m for m in query.network.maps if 0 in m.sources], query.domain
    matrices = [m for m in readers if isinstance(m, Dense)]
    if not isinstance(box, Box) or not matrices or len(matrices) < len(readers):
        return query
    # A weight of 0 that is a sum of nonzero terms may be off by rounding, so it counts as read.
    parts = [part for m in matrices for part in (_of_input(m, m.weights), _of_input(m, m.terms))]
    read = torch.stack([(part != 0).any(0) for part in parts if part is not None]).any(0)
    kept = torch.nonzero(read).flatten()
    if not len(kept) or len(kept) == len(read):
        return query

    def restrict(reader: Dense) -> Dense:
        at = reader.sources.index(0)

        def cut(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return (*parts[:at], parts[at][:, kept].contiguous(), *parts[at + 1 :])

        terms = None if reader.terms is None else cut(reader.terms)
        return replace(reader, weights=cut(reader.weights), terms=terms)

    return _rebuild(query, restrict, Box(box.lower[kept], box.upper[kept]), len(kept))


def _of_input(reader: Dense, parts: tuple[Tensor, ...] | None) -> Tensor | None:
    """The input's matrix among the matrices of all sources."""
    return None if parts is None else parts[reader.sources.index(0)]


@dataclass(frozen=True, eq=False)
class RowSpace:
    """A basis Q of the input subspace that a network reads, computed once for all points.

    For W the weights of a map that reads the input, `inner` is W Q. `left` bounds the norm of each
    row of W - inner Q^T plus the rounding error of a row's product with a vector of length 1.
    """

    basis: Tensor  # [inputs, reduced], orthonormal columns
    inner: tuple[Tensor, ...]  # for each map that reads the input, in order
    left: tuple[Tensor, ...]
    stretch: float  # upper bound on the operator norm of the basis

    def restrict(self, query: Query, ball: L2Ball) -> tuple[Query, Lift]:
        """The query on the image of the ball, which is centred at 0."""
        size_of, inputs = unit(ball.center.dtype), len(ball.center)
        size = torch.linalg.vector_norm(ball.center) + ball.radius + size_of.root(inputs)
        size = size_of.grow(inputs + 6) * size
        parts = iter(zip(self.inner, self.left, strict=True))

        def rotate(reader: Dense) -> Dense:
            inner, left = next(parts)
            weight = _input_weight(reader)
            bias = reader.bias + weight @ ball.center
            small = 4 * inputs + 4 + weight.abs().sum(-1) + ball.center.abs().sum()
            defect = left * size + size_of.share(2) * bias.abs() + size_of.underflow * small
            return _replace_input(reader, inner, bias, defect)

        reduced = L2Ball(torch.zeros_like(self.basis[0]), ball.radius * self.stretch)
        small = _rebuild(query, rotate, reduced, self.basis.shape[1])
        return small, Lift(ball.center, basis=self.basis)


def row_space(network: Network) -> RowSpace | None:
    """The row space of the maps that read the input; None unless all of them are plain matrices
    with fewer rows together than there are inputs."""
    readers = [m for m in network.maps if 0 in m.sources]
    weights = [_input_weight(m) for m in readers if _is_plain(m) and isinstance(m, Dense)]
    if len(weights) < len(readers):
        return None
    stacked = torch.cat(weights)  # [rows, inputs]
    if stacked.shape[0] >= stacked.shape[1]:
        return None
    basis = torch.linalg.qr(stacked.T).Q.contiguous()  # [inputs, rows]
    inner = tuple((weight @ basis).contiguous() for weight in weights)
    left = tuple(
        _missing(weight, image, basis) for weight, image in zip(weights, inner, strict=True)
    )
    return RowSpace(basis, inner, left, _stretch(basis))


def _missing(weight: Tensor, image: Tensor, basis: Tensor) -> Tensor:
    """The `left` of one map.

    With k columns, an entry of image Q^T is off by at most k + 1 roundings of |image| |Q|^T, whose
    rows are no longer than sqrt(k) |image|. The product of a row with a vector has as many
    roundings as there are inputs.
    """
    size_of, (inputs, columns) = unit(weight.dtype), basis.shape
    length: Tensor = torch.linalg.vector_norm(weight, dim=1)
    length = length + torch.linalg.vector_norm(image, dim=1)
    share = sqrt(columns) * size_of.share(columns + 4) + size_of.share(inputs + 4)
    missing: Tensor = torch.linalg.vector_norm(weight - image @ basis.T, dim=1)
    small = columns * size_of.root(inputs + columns)
    return size_of.grow(inputs + 6) * (missing + share * length + small)


def _stretch(basis: Tensor) -> float:
    """Upper bound on the operator norm of the basis: its columns are orthonormal only up to
    rounding, so the image of a ball may be a little larger than the ball.

    ||Q||^2 = ||Q^T Q|| <= 1 + ||Q^T Q - I||. An entry of the product has as many roundings as there
    are inputs, each of at most ||Q||^2; the norm of the errors is at most the number of columns
    times that. The square root is not taken: the half gained by that covers the rounding of the
    norm and of its products.
    """
    gram, size_of = basis.T @ basis, unit(basis.dtype)
    skew = float((gram - torch.eye(len(gram)).to(gram)).norm())
    return 1 + 2 * (skew + size_of.share(basis.numel() + 8) + size_of.root(basis.numel()))


def _is_plain(affine: AffineMap) -> bool:
    return isinstance(affine, Dense) and affine.terms is None


def _input_weight(reader: Dense) -> Tensor:
    return reader.weights[reader.sources.index(0)]


def _replace_input(reader: Dense, weight: Tensor, bias: Tensor, defect: Tensor) -> Dense:
    at = reader.sources.index(0)
    weights = (*reader.weights[:at], weight.contiguous(), *reader.weights[at + 1 :])
    before = 0 if reader.defect is None else reader.defect
    return replace(
        reader, weights=weights, bias=bias, defect=defect + before, terms=None, rounded=0
    )


def _rebuild(
    query: Query, restrict: Callable[[Dense], Dense], domain: Domain, inputs: int
) -> Query:
    *layers, output = (
        restrict(m) if isinstance(m, Dense) and 0 in m.sources else m for m in query.network.maps
    )
    small = replace(query.network, layers=tuple(layers), output=output, inputs=inputs)
    return replace(query, network=small, domain=domain)
