"""The original indices of the neurons, inputs and disjuncts that are left in a reduced query."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fgp_vnn.query import Query
from fgp_vnn.transform.inputs import Lift

Array = NDArray[Any]


class OriginalNames:
    """Original indices of a query's layers, neurons, inputs and disjuncts, from before the query
    was shrunk."""

    def __init__(self, query: Query) -> None:
        self.begins = list(accumulate([0, *query.network.widths]))  # first neuron of each layer
        self.layers = list(range(len(query.network.widths)))  # layers that are left
        self.neurons = [np.arange(a, b) for a, b in pairwise(self.begins)]  # left in each layer
        self.inputs: Array = np.arange(query.network.inputs)
        self.disjuncts: Array = np.arange(query.disjuncts)

    @property
    def flat(self) -> Array:
        """The neurons that are left, of all layers."""
        return np.concatenate([np.zeros(0, int), *self.neurons])

    def keep_neurons(self, places: Tensor) -> None:
        """Keep only the neurons at these positions among those that are left."""
        chosen = places.cpu().numpy()
        owners = np.repeat(self.layers, [len(part) for part in self.neurons])[chosen]
        flat = self.flat[chosen]
        self.layers = np.unique(owners).tolist()
        self.neurons = [flat[owners == layer] for layer in self.layers]

    def keep_inputs(self, lift: Lift) -> None:
        """Keep only the inputs that the lift keeps."""
        if lift.kept is not None:
            self.inputs = self.inputs[lift.kept.cpu().numpy()]

    def keep_disjuncts(self, disjuncts: Sequence[int]) -> None:
        """Keep only these disjuncts, in this order."""
        self.disjuncts = self.disjuncts[list(disjuncts)]
