"""Linear bounds and removal of stable neurons in one forward pass, for a chain of matrices.

Layer by layer, every neuron is written as an affine form of t = x - center and of the unstable
neurons before it: neurons that are stably on pass their forms on, neurons that are off vanish. Back
substitution of the few unstable neurons then gives the same linear bounds as a backward pass
through the whole network, and the forms of the unstable neurons make up the condensed network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.strategy import Shrinking
from fgp_vnn.transform.chain_forms import BoundedForms, ChainForms


@dataclass(frozen=True, eq=False)
class Condensed:
    """Lower bounds on a query's outputs, and the query on its unstable neurons only."""

    least: Tensor  # [rows]
    bounds: LayerBounds  # of the unstable neurons
    neurons: Tensor  # [unstable] their indices among all neurons of the network
    _make: Callable[[], Query]

    @cached_property
    def query(self) -> Query:
        """The condensed query, built on first use: often the bounds are enough."""
        return self._make()

    @classmethod
    def of(cls, query: Query, work: ChainForms, output: BoundedForms) -> Condensed:
        """Build it from the forms of a query's unstable neurons and of its output."""

        def make() -> Query:
            layers = tuple(work.dense(group.forms) for group in work.groups)
            return replace(query, network=Network(layers, work.dense(output), query.network.inputs))

        lower = tuple(group.lower.unsqueeze(0) for group in work.groups)
        upper = tuple(group.upper.unsqueeze(0) for group in work.groups)
        none = torch.zeros(0, dtype=torch.long, device=query.domain.center.device)
        neurons = torch.cat([none, *(group.neurons for group in work.groups)])
        return cls(work.least(output), LayerBounds(lower, upper), neurons, make)


def is_chain(network: Network) -> bool:
    """Whether each map is a matrix that reads only the layer before it, with ReLUs in between."""
    chained = (isinstance(m, Dense) and m.sources == (k,) for k, m in enumerate(network.maps))
    return network.piecewise_linear and all(chained)


def fits(network: Network, budget: Budget) -> bool:
    """Whether the forms of a chain fit into the memory budget for matrices."""
    columns, entries = network.inputs + 1, 0
    for width in (*network.widths, network.outputs):
        entries += width * columns
        columns += width
    return 8 * entries <= budget.matrices


def condense(query: Query, budget: Budget, shrinking: Shrinking) -> Condensed | None:
    """Bound all layers of a chain and remove the stable neurons; None if time is up."""
    chain = [m for m in query.network.maps if isinstance(m, Dense)]
    deep = len(chain) > shrinking.deep
    work = ChainForms(query.domain, query.network.dtype, budget, shrinking, deep=deep)
    forms = work.first(chain[0])
    for affine, following in pairwise(chain):
        through = None if budget.expired() else work.next(following, work.layer(forms, affine))
        if through is None:
            return None
        forms = through
    return Condensed.of(query, work, forms)
