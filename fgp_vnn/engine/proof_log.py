"""Records what a search proves, as the steps of a certificate.

Searches run on smaller and smaller queries, without stable neurons, fixed inputs and decided
disjuncts. A log knows the indices of the remaining neurons, inputs and disjuncts in the network and
the property as they were loaded. A stable neuron has slope 0 or 1 and leaves no choice, so slopes
and multipliers of the small query mean the same in the original one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fgp_vnn.bounds.constraints import width
from fgp_vnn.certificate.checker.proof import ProofStep
from fgp_vnn.certificate.checker.trees import LEAF
from fgp_vnn.engine.proof_trees import box_tree, sign_tree
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.activations.sigmoids import SIGMOID, TANH
from fgp_vnn.query import Query
from fgp_vnn.search.bundles import Bundles
from fgp_vnn.transform.inputs import Lift

Array = NDArray[Any]
_NAMED = (RELU, SIGMOID, TANH)


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


class NullLog:
    """The log of a search without a certificate: it keeps only the names."""

    wanted = False  # whether a certificate is wanted: it cannot express some steps
    gap = ""  # why the steps do not prove the verdict; empty if they do

    def __init__(self, query: Query) -> None:
        self.names = OriginalNames(query)

    def refined(self, layer: int, neurons: Tensor, slopes: Sequence[Tensor]) -> None:
        """Record lower bounds on z, then on -z, of neurons [m], by slopes [2 m, n_k]."""

    def sharpened(self, layer: int, neurons: Tensor, cover: Bundles) -> None:
        """Record such bounds, by bundles that cover the domain for each of the 2 m rows."""

    def leaf(self, bundles: Bundles) -> None:
        """Record bundles that a split search has closed."""

    def boxes(self, lower: Tensor, upper: Tensor, weights: Tensor, closed: Tensor) -> None:
        """Record boxes [boxes, inputs] of a search; those flagged as closed [boxes] are proved by
        the sum of the rows with weights [boxes, rows]."""

    def closed(
        self, query: Query, disjuncts: Sequence[int], least: Tensor, slopes: Sequence[Tensor]
    ) -> None:
        """Record disjuncts that one of their rows closes, by lower bounds on the query's rows
        [rows] with slopes [1, rows, n_k]."""

    def ended(self, *, proved: bool, in_time: bool) -> None:
        """Record the end of a search: if it proved the query, its leaves cover the domain."""


class ProofLog(NullLog):
    """The proof steps of one case."""

    wanted = True

    def __init__(self, query: Query, case: int) -> None:
        super().__init__(query)
        self.steps: list[ProofStep] = []
        self.gap = ""
        self._functions = query.network.activations
        # The checker has the same neurons only for these activations.
        self._by_neurons = all(f in _NAMED for f in query.network.activations)
        self._case = case
        owner = query.disjunct.cpu().numpy()
        self._rows = [np.flatnonzero(owner == d) for d in range(query.disjuncts)]
        self._row_count = len(owner)
        self._leaves: list[Bundles] = []
        self._boxes: list[tuple[Array, Array, Array]] = []

    def refined(self, layer: int, neurons: Tensor, slopes: Sequence[Tensor]) -> None:
        self.sharpened(layer, neurons, _unsplit(torch.cat(list(slopes), -1)))

    def sharpened(self, layer: int, neurons: Tensor, cover: Bundles) -> None:
        if not self._by_neurons:
            return  # proofs by boxes do not use these bounds
        own = self.names.layers[layer]
        names = self.names.neurons[layer][neurons.cpu().numpy()] - self.names.begins[own]
        arrays, _ = self._trees(cover, layer)
        arrays |= {"neurons": np.tile(names, 2), "sides": np.repeat([1, -1], len(names))}
        self.steps.append(ProofStep("lemma", self._case, arrays, own))

    def closed(
        self, query: Query, disjuncts: Sequence[int], least: Tensor, slopes: Sequence[Tensor]
    ) -> None:
        if not len(disjuncts):
            return
        rows = [query.rows_of(d) for d in disjuncts]
        places = [int(least[part].argmax()) for part in rows]
        if not self._by_neurons:
            numbers = self.names.disjuncts[list(disjuncts)]
            best = [self._rows[d][place] for d, place in zip(numbers, places, strict=True)]
            self._close_whole(numbers, np.array(best))
            return
        chosen = [part[place] for part, place in zip(rows, places, strict=True)]
        none = torch.zeros(len(chosen), 0)
        alpha = torch.cat([none, *(slope[0].cpu()[chosen] for slope in slopes)], -1)
        weights = torch.zeros(len(chosen), max(len(part) for part in rows))
        weights[torch.arange(len(chosen)), places] = 1
        bundles = replace(_unsplit(alpha), disjunct=torch.tensor(disjuncts), weights=weights)
        self._close(bundles)

    def leaf(self, bundles: Bundles) -> None:
        self._leaves.append(bundles)

    def boxes(self, lower: Tensor, upper: Tensor, weights: Tensor, closed: Tensor) -> None:
        low, high, sums = (part[closed].cpu().numpy() for part in (lower, upper, weights))
        self._boxes.append((low, high, sums))

    def ended(self, *, proved: bool, in_time: bool) -> None:
        try:
            if proved and not in_time:
                self.gap = "time was up before the proof was complete"
            elif proved and self._leaves and not self._by_neurons:
                self._close_whole(self.names.disjuncts, np.arange(self._row_count))
            elif proved and self._leaves:
                leaves = Bundles.joined(self._leaves)
                if bool(leaves.ends.isfinite().any()):
                    raise LookupError("a certificate cannot contain splits of smooth neurons")
                self._close(leaves)
            if proved and in_time and self._boxes:
                self._close_boxes()
        except LookupError as error:
            self.gap = str(error)
        self._leaves, self._boxes = [], []

    def _close(self, bundles: Bundles) -> None:
        found, order = self._trees(bundles, len(self.names.layers))
        current = bundles.disjunct.cpu().numpy()[order]
        given = bundles.weights.cpu().numpy()[order]
        weights = np.zeros((len(given), self._row_count))
        for leaf, disjunct in enumerate(self.names.disjuncts[current]):
            rows = self._rows[disjunct]
            # Disjuncts with fewer rows than others repeat their last row.
            places = np.minimum(np.arange(given.shape[1]), len(rows) - 1)
            np.add.at(weights[leaf], rows[places], given[leaf])
        found |= {"disjuncts": self.names.disjuncts[np.unique(current)], "weights": weights}
        self.steps.append(ProofStep("close", self._case, found))

    def _close_whole(self, disjuncts: Array, rows: Array) -> None:
        """Record disjuncts that the checker closes by sums of these rows over the whole box, or
        else by input splits that it is given (see `certificate.repair`)."""
        weights = np.zeros((1, self._row_count))
        weights[0, rows] = 1
        arrays = {
            "disjuncts": np.asarray(disjuncts),
            "tree": np.array([LEAF]),
            "cuts": np.zeros(0),
            "weights": weights,
        }
        self.steps.append(ProofStep("boxes", self._case, arrays))

    def _trees(self, bundles: Bundles, layers: int) -> tuple[dict[str, Array], Array]:
        """The split trees of bundles, one for each number in their `disjunct`, and the order of the
        bundles in these trees."""
        names = np.concatenate([np.zeros(0, int), *self.names.neurons[:layers]])
        owner, signs, alpha, beta = (part.cpu().numpy() for part in bundles.parts()[:4])
        places = self._places(layers)
        nodes: list[int] = []
        order: list[int] = []
        multipliers: list[float] = []
        for number in np.unique(owner):
            members = np.flatnonzero(owner == number)
            tree, leaves = sign_tree(signs[members])
            nodes += [LEAF if node == LEAF else int(names[node]) for node in tree]
            for leaf, path in leaves:
                order.append(int(members[leaf]))
                multipliers += beta[members[leaf], places[path]].tolist()
        arrays = {
            "tree": np.array(nodes),
            "columns": names[: alpha.shape[1]],
            "slopes": np.rint(255 * alpha[order]),
            "multipliers": np.array(multipliers),
        }
        return arrays, np.array(order)

    def _places(self, layers: int) -> Array:
        """Position of each neuron's sign multiplier among the multipliers of all constraints."""
        places, begin = [np.zeros(0, int)], 0
        for own, names in zip(self.names.layers[:layers], self.names.neurons, strict=False):
            places.append(begin + np.arange(len(names)))
            begin += width(self._functions[own], len(names))
        return np.concatenate(places)

    def _close_boxes(self) -> None:
        lower, upper, given = (np.concatenate(part) for part in zip(*self._boxes, strict=True))
        nodes, cuts, order = box_tree(lower, upper)
        rows = np.concatenate([self._rows[d] for d in self.names.disjuncts])
        weights = np.zeros((len(given), self._row_count))
        weights[:, rows] = given[order]
        arrays = {
            "disjuncts": self.names.disjuncts,
            "tree": np.where(nodes == LEAF, LEAF, self.names.inputs[nodes]),
            "cuts": cuts,
            "weights": weights,
        }
        self.steps.append(ProofStep("boxes", self._case, arrays))


def _unsplit(slopes: Tensor) -> Bundles:
    """One bundle with all neurons open for each row of slopes [bundles, neurons]."""
    none = torch.zeros_like(slopes)
    numbers = torch.arange(len(slopes))
    ends = slopes.new_zeros(len(slopes), 2, 0)
    return Bundles(numbers, none.to(torch.int8), slopes, none, torch.ones(len(slopes), 1), ends)
