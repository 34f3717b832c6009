"""The normal form of a network: affine maps with activations between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import torch
from torch import Tensor

from fgp_vnn.base.rounding import rounded_down
from fgp_vnn.base.words import plural
from fgp_vnn.network.activations.base import RELU, Activation
from fgp_vnn.network.maps.affine import AffineMap as AffineMap
from fgp_vnn.network.maps.affine import Charge as Charge
from fgp_vnn.network.maps.affine import Underflows as Underflows
from fgp_vnn.network.maps.affine import charged, terms_in
from fgp_vnn.network.maps.matrix import Compressed, compressed
from fgp_vnn.network.maps.products import product

_KEPT = 1 << 20  # matrix entries of a map up to which other forms of its matrices are cached


@dataclass(frozen=True, eq=False)
class Dense(AffineMap):
    """An affine map stored as one matrix per source.

    If entries were computed as sums of several terms, `terms` holds the sums of the terms' absolute
    values, one matrix per source, then a vector for the bias; and each term was rounded at most
    `rounded` times. In another precision than that of the computation, `terms_in` converts them.
    """

    sources: tuple[int, ...]
    weights: tuple[Tensor, ...]  # each [outputs, n_s]
    bias: Tensor  # [outputs]
    defect: Tensor | None = None  # [outputs]
    terms: tuple[Tensor, ...] | None = None  # each [outputs, n_s], then [outputs]
    rounded: int = 0

    @property
    def operations(self) -> int:
        """Roundings of a term: a product, sums over columns, sources and bias, the weight's cast,
        and those of the weight's computation."""
        columns = sum(weight.shape[1] for weight in self.weights)
        return columns + len(self.weights) + 3 + self.rounded

    def magnitude(self, values: Sequence[Tensor]) -> Tensor:
        *sizes, offset = self.terms or (*self._absolute, self.bias.abs())
        for value, size in zip(values, sizes, strict=True):
            offset = offset + value @ size.T
        return offset

    @property
    def _absolute(self) -> tuple[Tensor, ...]:
        """|W| per source, cached if it is small."""
        return self._kept_absolute if self._few else tuple(w.abs() for w in self.weights)

    @property
    def _few(self) -> bool:
        return sum(weight.numel() for weight in self.weights) <= _KEPT

    @cached_property
    def _kept_absolute(self) -> tuple[Tensor, ...]:
        return tuple(weight.abs() for weight in self.weights)

    def underflows(self, values: Sequence[Tensor]) -> Underflows:
        """Count two operations for each entry of a row (forward) or of a column (backward)."""
        read = 1 + values[0].sum(-1, keepdim=True)
        for value in values[1:]:
            read = read + value.sum(-1, keepdim=True)
        entries = 1 + sum(weight.shape[1] for weight in self.weights)
        return Underflows(2 * entries + read, (2 * self.outputs + 2) * read)

    def charge(self, values: Sequence[Tensor], share: float, times: float = 1.0) -> Charge:
        """Compute the charge by one product per source with cached matrices, if these are small.

        The entries of these matrices have two roundings. Underflow in the products with them is not
        scaled by the share: (24/7 + 24/7) t in the theorem's proof, which is still less than 8 t.
        """
        if not self._few:
            return super().charge(values, share, times)
        if (share, times) not in self._charges:
            sizes = self.terms or (*self._absolute, self.bias.abs())
            self._charges[share, times] = charged(sizes, self.defect, share, times)
        *matrices, constant = self._charges[share, times]
        both = product(values[0], matrices[0], constant)
        for value, matrix in zip(values[1:], matrices[1:], strict=True):
            both = both + product(value, matrix)
        return Charge(both[..., :-1], both[..., -1:])

    @cached_property
    def _charges(self) -> dict[tuple[float, float], tuple[Tensor, ...]]:
        return {}

    def spread(self, radii: Sequence[Tensor]) -> Tensor:
        pairs = zip(radii, self._absolute, strict=True)
        return reduce(torch.add, (radius @ size.T for radius, size in pairs))

    def linear(self, values: Sequence[Tensor]) -> Tensor:
        return self._applied(values, None)

    def __call__(self, values: Sequence[Tensor]) -> Tensor:
        return self._applied(values, self.bias)

    def _applied(self, values: Sequence[Tensor], bias: Tensor | None) -> Tensor:
        result = bias
        for value, weight, sparse in zip(values, self.weights, self._compressed, strict=True):
            if sparse is None and result is bias:
                result = product(value, weight, bias)
                continue
            part = product(value, weight) if sparse is None else sparse.push(value)
            result = part if result is None else result + part
        if result is None:
            raise AssertionError("a map reads at least one source")
        return result

    def adjoint(self, rows: Tensor) -> tuple[Tensor, ...]:
        if (joined := self._joined) is not None:
            return torch.split(
                product(rows, joined.T), [weight.shape[1] for weight in self.weights], -1
            )
        pairs = zip(self.weights, self._compressed, strict=True)
        return tuple(
            product(rows, w.T) if sparse is None else sparse.pull(rows) for w, sparse in pairs
        )

    @cached_property
    def _joined(self) -> Tensor | None:
        """The matrices of several sources side by side, to pull rows back by one product; None for
        a single source and for large or sparse matrices."""
        if len(self.weights) < 2 or not self._few or any(c is not None for c in self._compressed):
            return None
        return torch.cat(self.weights, 1)

    @cached_property
    def _compressed(self) -> tuple[Compressed | None, ...]:
        """The sparse form of each matrix whose entries are mostly zero; None for the others."""
        return tuple(compressed(weight) for weight in self.weights)

    def rows_at(self, outputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(weight[outputs] for weight in self.weights)

    def select(self, outputs: Tensor) -> Dense:
        weights = tuple(weight[outputs] for weight in self.weights)
        defect = None if self.defect is None else self.defect[outputs]
        terms = None if self.terms is None else tuple(t[outputs] for t in self.terms)
        return Dense(self.sources, weights, self.bias[outputs], defect, terms, self.rounded)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Dense:
        weights = tuple(weight.to(device, dtype) for weight in self.weights)
        defect = None if self.defect is None else -rounded_down(-self.defect.to(device), dtype)
        terms, entries = self.terms, (*self.weights, self.bias)
        if terms is not None:
            terms = tuple(t.to(device) for t in terms_in(dtype, terms, entries))
        bias = self.bias.to(device, dtype)
        return Dense(self.sources, weights, bias, defect, terms, self.rounded)


@dataclass(frozen=True, eq=False)
class Combination(AffineMap):
    """rows @ inner + offset: linear combinations of another map's results."""

    inner: AffineMap
    rows: Tensor  # [outputs, inner outputs]
    offset: Tensor  # [outputs]

    @property
    def sources(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.inner.sources

    @cached_property
    def bias(self) -> Tensor:  # type: ignore[override]
        return self.rows @ self.inner.bias + self.offset

    @cached_property
    def defect(self) -> Tensor | None:  # type: ignore[override]
        return None if self.inner.defect is None else self.rows.abs() @ self.inner.defect

    @property
    def operations(self) -> int:
        """Roundings of a term: the inner map's, a product, sums, the offset and the constants'."""
        return self.inner.operations + self.rows.shape[1] + 4

    def magnitude(self, values: Sequence[Tensor]) -> Tensor:
        return self.inner.magnitude(values) @ self.rows.abs().T + self.offset.abs()

    def underflows(self, values: Sequence[Tensor]) -> Underflows:
        """The loss of the inner map times |rows|, plus the loss of the products with the rows."""
        inner = self.inner.underflows(values)
        sizes, defect = self.inner.magnitude(values), self.inner.defect
        read = 1 + (sizes if defect is None else sizes + defect).sum(-1, keepdim=True)
        each = inner.forward.expand(*inner.forward.shape[:-1], self.inner.outputs)
        forward = each @ self.rows.abs().T + (4 * self.inner.outputs + 4) + read
        count = 2 * self.outputs + 2
        return Underflows(forward, inner.backward + count * (read + each.sum(-1, keepdim=True)))

    def linear(self, values: Sequence[Tensor]) -> Tensor:
        return self.inner.linear(values) @ self.rows.T

    def adjoint(self, rows: Tensor) -> tuple[Tensor, ...]:
        return self.inner.adjoint(rows @ self.rows)

    def select(self, outputs: Tensor) -> Combination:
        return Combination(self.inner, self.rows[outputs], self.offset[outputs])

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Combination:
        rows, offset = self.rows.to(device, dtype), self.offset.to(device, dtype)
        return Combination(self.inner.to(device, dtype), rows, offset)


@dataclass(frozen=True, eq=False)
class Network:
    """z_k = F_k(x, a_1, ..., a_{k-1}), a_k = f_k(z_k), y = F_out(x, a_1, ..., a_K).

    Each layer has one activation f_k; without `activations`, all are ReLUs.
    """

    layers: tuple[AffineMap, ...]  # F_1, ..., F_K
    output: AffineMap  # F_out
    inputs: int
    activations: tuple[Activation, ...] = ()  # f_1, ..., f_K

    def __post_init__(self) -> None:
        if not self.activations:
            object.__setattr__(self, "activations", (RELU,) * len(self.layers))
        if len(self.activations) != len(self.layers):
            raise ValueError("each layer has one activation")

    @property
    def piecewise_linear(self) -> bool:
        """Whether all activations are ReLUs: only then is the network affine in each region."""
        return all(f is RELU for f in self.activations)

    @property
    def smooth_names(self) -> str:
        """The names of the activations other than ReLU, separated by commas."""
        return ", ".join(sorted({f.name for f in self.activations if f is not RELU}))

    @property
    def value_widths(self) -> tuple[int, ...]:
        """The number of values that each layer's activation returns."""
        return tuple(f.outputs(n) for f, n in zip(self.activations, self.widths, strict=True))

    def __repr__(self) -> str:
        widths = ", ".join(map(str, self.widths[:8])) + (", ..." if len(self.widths) > 8 else "")
        neurons = "no neuron"
        if self.widths:
            neurons = f"{plural(self.neurons, 'neuron')} in layers of {widths}"
        ends = plural(self.inputs, "input"), plural(self.outputs, "output")
        return f"Network({ends[0]}, {neurons}, {ends[1]})"

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of neurons in each layer."""
        return tuple(layer.outputs for layer in self.layers)

    @property
    def neurons(self) -> int:
        """The number of neurons in all layers."""
        return sum(self.widths)

    @property
    def outputs(self) -> int:
        return self.output.outputs

    @property
    def maps(self) -> tuple[AffineMap, ...]:
        """F_1, ..., F_K, F_out."""
        return (*self.layers, self.output)

    @property
    def dtype(self) -> torch.dtype:
        return self.output.bias.dtype

    @property
    def device(self) -> torch.device:
        return self.output.bias.device

    def preactivations(self, x: Tensor) -> list[Tensor]:
        """z_1, ..., z_K and, last, y at a batch of inputs x [batch, inputs]."""
        values = [x]
        result = []
        for layer, activation in zip(self.layers, self.activations, strict=True):
            result.append(layer([values[s] for s in layer.sources]))
            values.append(activation.value(result[-1]))
        result.append(self.output([values[s] for s in self.output.sources]))
        return result

    def __call__(self, x: Tensor) -> Tensor:
        """The outputs [batch, outputs] at x [batch, inputs]."""
        return self.preactivations(x)[-1]

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Network:
        """The same network on another device or in another precision."""
        layers = tuple(layer.to(device, dtype) for layer in self.layers)
        functions = tuple(activation.to(device) for activation in self.activations)
        output = self.output.to(device, dtype)
        return replace(self, layers=layers, output=output, activations=functions)
