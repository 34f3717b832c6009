"""One question: does a point of the domain have an output in the unsafe set?

The rows of the unsafe set become part of the network, whose outputs are then the values
g_j(x) = row_j . y(x) - limit_j. Disjunct d is met at x if g_j(x) <= 0 (< 0 if strict) for each of
its rows j.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Combination, Dense, Network
from fgp_vnn.property.model import Conjunction


@dataclass(frozen=True, eq=False)
class Query:
    """A network with outputs g [rows], a domain, and which rows form each disjunct."""

    network: Network
    domain: Domain
    disjunct: Tensor  # [rows] the disjunct that each row belongs to
    strict: Tensor  # [rows] whether the row is met by g < 0 only
    disjuncts: int

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Query:
        """The same query on another device or in another precision."""
        return replace(
            self,
            network=self.network.to(device, dtype),
            domain=self.domain.to(device, dtype),
            disjunct=self.disjunct.to(device),
            strict=self.strict.to(device),
        )

    def coarse(self) -> tuple[Network, Domain] | None:
        """The network and the domain in float32; None if they already are in float32."""
        if self.network.dtype == torch.float32:
            return None
        device = self.network.device
        return self.network.to(device, torch.float32), self.domain.to(device, torch.float32)

    @cached_property
    def _rows(self) -> tuple[list[int], ...]:
        """The row indices of each disjunct, read from the device once."""
        found: tuple[list[int], ...] = tuple([] for _ in range(self.disjuncts))
        for row, disjunct in enumerate(self.disjunct.tolist()):
            found[disjunct].append(row)
        return found

    @cached_property
    def conjunctions(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """The disjuncts with more than one row, grouped by their number of rows: for each group the
        indices of the disjuncts [m] and of their rows [m, rows of each]."""
        sizes = [len(rows) for rows in self._rows]
        several = sorted({size for size in sizes if size > 1})
        groups = [[d for d, n in enumerate(sizes) if n == size] for size in several]
        numbers = self.disjunct.new_tensor
        return tuple((numbers(g), numbers([self._rows[d] for d in g])) for g in groups)

    @cached_property
    def distinct(self) -> tuple[Tensor, Tensor]:
        """The indices of the distinct rows [m], and for each row [rows] its position among them."""
        numbers = torch.arange(self.network.outputs, device=self.disjunct.device)
        output = self.network.output
        if isinstance(output, Combination) and output.defect is None:
            parts = [output.rows, output.offset.unsqueeze(-1)]
        elif isinstance(output, Dense) and output.defect is None and output.terms is None:
            parts = [*output.weights, output.bias.unsqueeze(-1)]
        else:
            return numbers, numbers
        same = torch.unique(torch.cat(parts, -1), dim=0, return_inverse=True)[1]
        least = torch.full_like(numbers, len(numbers)).scatter_reduce(0, same, numbers, "amin")
        first, place = torch.unique(least[same], return_inverse=True)
        return first, place

    def rows_of(self, disjunct: int) -> list[int]:
        """The row indices of a disjunct."""
        return list(self._rows[disjunct])

    def closed(self, lower: Tensor) -> Tensor:
        """Which disjuncts [..., disjuncts] cannot be met, given g >= lower [..., rows]."""
        unmet = positive(lower, or_zero=self.strict).int()
        counts = unmet.new_zeros((*unmet.shape[:-1], self.disjuncts))
        return counts.index_add(-1, self.disjunct, unmet) > 0

    def worst(self, g: Tensor) -> Tensor:
        """The largest g among the rows of each disjunct, [..., disjuncts]; at most 0 where the
        disjunct is met."""
        start = g.new_full((*g.shape[:-1], self.disjuncts), -torch.inf)
        return start.scatter_reduce(-1, self.disjunct.expand(g.shape), g, "amax")

    def only(self, keep: Sequence[int]) -> Query:
        """The query restricted to the disjuncts `keep`."""
        rows = [j for d in keep for j in self.rows_of(d)]
        names = [i for i, d in enumerate(keep) for _ in self.rows_of(d)]
        chosen = torch.tensor(rows, dtype=torch.long, device=self.disjunct.device)
        return replace(
            self,
            network=replace(self.network, output=self.network.output.select(chosen)),
            disjunct=torch.tensor(names, dtype=torch.long, device=self.disjunct.device),
            strict=self.strict[chosen],
            disjuncts=len(keep),
        )


def ask_values(
    network: Network, domain: Domain, target: int, rows: Tensor, offset: Tensor | None = None
) -> Query:
    """The query whose outputs are the rows [rows, outputs of the map] of map number `target`, plus
    an offset [rows]. Each row is a disjunct of its own; later maps are left out."""
    none = torch.zeros_like(rows[:, 0])
    output = Combination(network.maps[target], rows, none if offset is None else offset)
    layers, activations = network.layers[:target], network.activations[:target]
    return ask_outputs(Network(layers, output, network.inputs, activations), domain)


def ask_outputs(network: Network, domain: Domain) -> Query:
    """The query in which each output of a network is a disjunct of its own."""
    count, device = network.outputs, network.device
    strict = torch.zeros(count, dtype=torch.bool, device=device)
    return Query(network, domain, torch.arange(count, device=device), strict, count)


def ask(network: Network, domain: Domain, unsafe: Sequence[Conjunction]) -> Query:
    """The query whether an input of the domain has an output in one of the conjunctions."""
    device, dtype = network.device, network.dtype
    rows, limits = (part.to(device, dtype) for part in _rows(unsafe, network.outputs))
    combined = replace(network, output=Combination(network.output, rows, -limits))
    return _query(combined, domain.to(device, dtype), unsafe)


def ask_of_outputs(outputs: int, unsafe: Sequence[Conjunction]) -> Query:
    """The query whose inputs are the outputs of another network; its own network computes g."""
    rows, limits = _rows(unsafe, outputs)
    whole = torch.full((outputs,), torch.inf, dtype=rows.dtype)
    network = Network((), Dense((0,), (rows,), -limits), outputs)
    return _query(network, Box(-whole, whole), unsafe)


def _rows(unsafe: Sequence[Conjunction], outputs: int) -> tuple[Tensor, Tensor]:
    """The rows [rows, outputs] of all conjunctions, and their limits [rows]."""
    rows = np.concatenate([np.zeros((0, outputs)), *(c.rows for c in unsafe)])
    limits = np.concatenate([np.zeros(0), *(c.limits for c in unsafe)])
    return torch.from_numpy(rows), torch.from_numpy(limits)


def _query(network: Network, domain: Domain, unsafe: Sequence[Conjunction]) -> Query:
    """The query for a network whose outputs are the rows g of all conjunctions."""
    strict = np.concatenate([np.zeros(0, bool), *(c.strict for c in unsafe)])
    disjunct = np.repeat(np.arange(len(unsafe)), [len(c.limits) for c in unsafe])
    return Query(
        network=network,
        domain=domain,
        disjunct=torch.as_tensor(disjunct, device=network.device, dtype=torch.long),
        strict=torch.as_tensor(strict, device=network.device),
        disjuncts=len(unsafe),
    )
