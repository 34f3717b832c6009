"""The same query with fewer inputs, where nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fgp_vnn.domain import Box, Domain, L2Ball
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.query import Query


@dataclass(frozen=True, eq=False)
class Lift:
    """The way back from a reduced input t to the network's own input x."""

    origin: Tensor  # [inputs]
    basis: Tensor | None = None  # [inputs, reduced]: x = origin + basis @ t
    kept: Tensor | None = None  # [reduced]: x[kept] = t, the others as in origin

    def __call__(self, points: Tensor) -> Tensor:
        """x [..., inputs] at t [..., reduced]."""
        if self.basis is not None:
            return self.origin + points.to(self.basis.dtype) @ self.basis.T
        if self.kept is None:
            return points
        x = self.origin.expand(*points.shape[:-1], -1).clone()
        x[..., self.kept] = points.to(x.dtype)
        return x


def reduce_inputs(query: Query) -> tuple[Query, Lift]:
    """Drop what the network does not see, or the domain does not move.

    A box loses its coordinates of width zero. An l2 ball is turned into the row space of the maps
    that read the input: with the columns of Q an orthonormal basis of it, W(x - c) depends on
    t = Q^T (x - c) only, and the image of the ball under Q^T is the ball of the same radius. What
    rounding leaves of W - W Q Q^T is kept as the map's defect.
    """
    readers = [m for m in query.network.layers if 0 in m.sources]
    whole = Lift(query.domain.center)
    plain = all(isinstance(m, Dense) and m.terms is None for m in readers)
    if not plain or 0 in query.network.output.sources:
        return query, whole
    if isinstance(query.domain, Box):
        return _drop_fixed(query, query.domain) or (query, whole)
    if isinstance(query.domain, L2Ball):
        return _rotate(query, query.domain) or (query, whole)
    return query, whole


def _drop_fixed(query: Query, box: Box) -> tuple[Query, Lift] | None:
    moves = box.upper > box.lower
    kept, fixed = torch.nonzero(moves).flatten(), torch.nonzero(~moves).flatten()
    if not len(kept) or not len(fixed):
        return None

    def restrict(reader: Dense) -> Dense:
        weight = _input_weight(reader)
        value, size = box.lower[fixed], box.lower[fixed].abs()
        bias = reader.bias + weight[:, fixed] @ value
        terms = reader.bias.abs() + weight[:, fixed].abs() @ size
        rounding = (len(fixed) + 2) * torch.finfo(terms.dtype).eps * terms
        return _replace_input(reader, weight[:, kept], bias, rounding)

    reduced = Box(box.lower[kept], box.upper[kept])
    return _rebuild(query, restrict, reduced, len(kept)), Lift(box.lower, kept=kept)


def _rotate(query: Query, ball: L2Ball) -> tuple[Query, Lift] | None:
    readers = [m for m in query.network.layers if isinstance(m, Dense) and 0 in m.sources]
    stacked = torch.cat([_input_weight(m) for m in readers])  # [rows, inputs]
    if stacked.shape[0] >= stacked.shape[1]:
        return None
    basis = torch.linalg.qr(stacked.T).Q  # [inputs, rows]

    def restrict(reader: Dense) -> Dense:
        weight = _input_weight(reader)
        inner = weight @ basis
        eps = weight.shape[1] * torch.finfo(weight.dtype).eps
        size = ball.center.norm() + ball.radius
        left = (weight - inner @ basis.T).norm(dim=1) + 4 * eps * weight.norm(dim=1)
        bias = reader.bias + weight @ ball.center
        return _replace_input(reader, inner, bias, left * size + eps * reader.bias.abs())

    # The columns of the basis are orthonormal up to rounding: the image may be a little larger.
    # ||Q||^2 = ||Q^T Q|| <= 1 + ||Q^T Q - I||, and the product itself is rounded.
    gram = basis.T @ basis
    skew = float((gram - torch.eye(len(gram)).to(gram)).norm())
    slack = skew + 2 * basis.numel() * torch.finfo(basis.dtype).eps
    radius = ball.radius * (1 + max(slack, 1e-12))
    reduced = L2Ball(torch.zeros_like(basis[0]), radius)
    return _rebuild(query, restrict, reduced, basis.shape[1]), Lift(ball.center, basis=basis)


def _input_weight(reader: Dense) -> Tensor:
    return reader.weights[reader.sources.index(0)]


def _replace_input(reader: Dense, weight: Tensor, bias: Tensor, defect: Tensor) -> Dense:
    at = reader.sources.index(0)
    weights = (*reader.weights[:at], weight.contiguous(), *reader.weights[at + 1 :])
    before = 0 if reader.defect is None else reader.defect
    return replace(reader, weights=weights, bias=bias, defect=defect + before, terms=None)


def _rebuild(
    query: Query, restrict: Callable[[Dense], Dense], domain: Domain, inputs: int
) -> Query:
    layers: tuple[AffineMap, ...] = tuple(
        restrict(m) if isinstance(m, Dense) and 0 in m.sources else m for m in query.network.layers
    )
    network = Network(layers, query.network.output, inputs)
    return replace(query, network=network, domain=domain)
