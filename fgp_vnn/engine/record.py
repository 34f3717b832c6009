"""What a search proves, kept as the steps of a certificate.

Searches run on smaller and smaller queries: stable neurons composed away, fixed inputs and decided
disjuncts left out. A record knows what each neuron, input and disjunct that is left is called in
the network and the property as they were loaded. A stable neuron has the slope 0 or 1 and nothing
to choose, so that slopes and multipliers of the small query mean the same in the large one.
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

from fgp_vnn.bounds.backward import LayerBounds
from fgp_vnn.certificate.checker.proof import Step
from fgp_vnn.certificate.checker.trees import LEAF
from fgp_vnn.query import Query
from fgp_vnn.search.bundles import Bundles
from fgp_vnn.transform.inputs import Lift
from fgp_vnn.transform.stable import undecided

Array = NDArray[Any]


class Record:
    """The steps of a proof about one case, and the names of what is left of its query."""

    def __init__(self, query: Query, case: int) -> None:
        self.steps: list[Step] = []
        self.gap = ""  # why the steps do not prove it; empty if they do
        self._case = case
        widths = list(query.network.widths)
        begins = list(accumulate([0, *widths]))
        self._layers = list(range(len(widths)))  # of the layers that are left
        self._begins = begins[:-1]
        self._neurons = [np.arange(a, b) for a, b in pairwise(begins)]
        self._inputs = np.arange(query.network.inputs)
        self._disjuncts = np.arange(query.disjuncts)
        owner = query.disjunct.cpu().numpy()
        self._rows = [np.flatnonzero(owner == d) for d in range(query.disjuncts)]
        self._row_count = len(owner)
        self._leaves: list[Bundles] = []
        self._boxes: list[tuple[Array, Array, Array]] = []

    # The names of what is left.

    def collapsed(self, bounds: LayerBounds) -> None:
        """Only the neurons are left that a collapse with these bounds leaves."""
        masks = [mask.cpu().numpy() for mask in undecided(bounds)]
        kept = [k for k, mask in enumerate(masks) if mask.any()]
        self._neurons = [self._neurons[k][masks[k]] for k in kept]
        self._layers = [self._layers[k] for k in kept]

    def reduced(self, lift: Lift) -> None:
        """Only the inputs that move are left."""
        if lift.kept is not None:
            self._inputs = self._inputs[lift.kept.cpu().numpy()]

    def only(self, disjuncts: Sequence[int]) -> None:
        """Only these disjuncts are left."""
        self._disjuncts = self._disjuncts[list(disjuncts)]

    # What is proved.

    def refined(self, layer: int, neurons: Tensor, slopes: Sequence[Tensor]) -> None:
        """Lower bounds of z and then of -z of neurons [m], by slopes [2 m, n_k]."""
        self.sharpened(layer, neurons, _unsplit(torch.cat(list(slopes), -1)))

    def sharpened(self, layer: int, neurons: Tensor, cover: Bundles) -> None:
        """The same by bundles that cover the domain for each of the 2 m rows."""
        names = self._neurons[layer][neurons.cpu().numpy()] - self._begins[self._layers[layer]]
        arrays, _ = self._trees(cover, layer)
        arrays |= {"neurons": np.tile(names, 2), "sides": np.repeat([1, -1], len(names))}
        self.steps.append(Step("lemma", self._case, arrays, self._layers[layer]))

    def closed(
        self,
        query: Query,
        disjuncts: Sequence[int],
        least: Tensor,
        slopes: Sequence[Tensor] | None,
    ) -> None:
        """Disjuncts that one of their rows closes, by lower bounds of the query's rows [rows] with
        slopes [1, rows, n_k], or with the usual ones."""
        if not len(disjuncts):
            return
        rows = [query.rows_of(d) for d in disjuncts]
        places = [int(least[part].argmax()) for part in rows]
        chosen = [part[place] for part, place in zip(rows, places, strict=True)]
        alpha = torch.zeros(len(chosen), 0)
        if slopes is not None:
            alpha = torch.cat([alpha, *(slope[0].cpu()[chosen] for slope in slopes)], -1)
        weights = torch.zeros(len(chosen), max(len(part) for part in rows))
        weights[torch.arange(len(chosen)), places] = 1
        bundles = replace(_unsplit(alpha), disjunct=torch.tensor(disjuncts), weights=weights)
        self._close(bundles)

    def leaf(self, bundles: Bundles) -> None:
        """Bundles that a split search has closed."""
        self._leaves.append(bundles)

    def box(self, lower: Tensor, upper: Tensor, weights: Tensor) -> None:
        """Boxes that a search has closed."""
        self._boxes.append((lower.cpu().numpy(), upper.cpu().numpy(), weights.cpu().numpy()))

    def forget(self) -> None:
        """Drop the leaves of a search that did not come to its end."""
        self._leaves, self._boxes = [], []

    def searched(self) -> None:
        """A search has come to its end: its leaves cover the domain."""
        try:
            if self._leaves:
                parts = zip(*(bundles.parts() for bundles in self._leaves), strict=True)
                self._close(Bundles(*(torch.cat(part) for part in parts)))
            if self._boxes:
                self._close_boxes()
        except LookupError as error:
            self.gap = str(error)
        self.forget()

    def _close(self, bundles: Bundles) -> None:
        found, order = self._trees(bundles, len(self._layers))
        current = bundles.disjunct.cpu().numpy()[order]
        given = bundles.weights.cpu().numpy()[order]
        weights = np.zeros((len(given), self._row_count))
        for leaf, disjunct in enumerate(self._disjuncts[current]):
            rows = self._rows[disjunct]
            # Disjuncts with fewer rows than others have their last one repeated.
            places = np.minimum(np.arange(given.shape[1]), len(rows) - 1)
            np.add.at(weights[leaf], rows[places], given[leaf])
        found |= {"disjuncts": self._disjuncts[np.unique(current)], "weights": weights}
        self.steps.append(Step("close", self._case, found))

    def _trees(self, bundles: Bundles, layers: int) -> tuple[dict[str, Array], Array]:
        """The trees of bundles, one for each number in their `disjunct`, and the order in which
        they hold the bundles."""
        names = np.concatenate([np.zeros(0, int), *self._neurons[:layers]])
        owner, signs, alpha, beta = (part.cpu().numpy() for part in bundles.parts()[:4])
        nodes: list[int] = []
        order: list[int] = []
        multipliers: list[float] = []
        for number in np.unique(owner):
            members = np.flatnonzero(owner == number)
            tree, leaves = sign_tree(signs[members])
            nodes += [LEAF if node == LEAF else int(names[node]) for node in tree]
            for leaf, path in leaves:
                order.append(int(members[leaf]))
                multipliers += beta[members[leaf], path].tolist()
        arrays = {
            "tree": np.array(nodes),
            "columns": names[: alpha.shape[1]],
            "slopes": np.rint(255 * alpha[order]),
            "multipliers": np.array(multipliers),
        }
        return arrays, np.array(order)

    def _close_boxes(self) -> None:
        lower, upper, given = (np.concatenate(part) for part in zip(*self._boxes, strict=True))
        nodes, cuts, order = box_tree(lower, upper)
        rows = np.concatenate([self._rows[d] for d in self._disjuncts])
        weights = np.zeros((len(given), self._row_count))
        weights[:, rows] = given[order]
        arrays = {
            "disjuncts": self._disjuncts,
            "tree": np.where(nodes == LEAF, LEAF, self._inputs[nodes]),
            "cuts": cuts,
            "weights": weights,
        }
        self.steps.append(Step("boxes", self._case, arrays))


def _unsplit(slopes: Tensor) -> Bundles:
    """Each a bundle of its own with everything open, and slopes [bundles, neurons]."""
    none = torch.zeros_like(slopes)
    numbers = torch.arange(len(slopes))
    return Bundles(numbers, none.to(torch.int8), slopes, none, torch.ones(len(slopes), 1))


def sign_tree(signs: Array) -> tuple[list[int], list[tuple[int, list[int]]]]:
    """A tree of splits whose leaves are these patterns [leaves, neurons]: its nodes in preorder,
    and for each leaf in that order its pattern and the neurons on the way to it.

    If the patterns are the leaves of some tree, the neuron at its root is closed in all of them.
    Any neuron that is closed in all of them, with both signs, will do: what it leaves of the tree
    on either side is a tree again.
    """
    nodes: list[int] = []
    leaves: list[tuple[int, list[int]]] = []
    waiting: list[tuple[Array, list[int]]] = [(np.arange(len(signs)), [])]
    used = np.flatnonzero(signs.any(0))
    while waiting:
        some, path = waiting.pop()
        if len(some) == 1:
            if np.count_nonzero(signs[some[0]]) != len(path):
                raise LookupError("the leaves of the search are not those of a tree")
            nodes.append(LEAF)
            leaves.append((int(some[0]), path))
            continue
        here = signs[np.ix_(some, used)]
        both = used[(here != 0).all(0) & (here > 0).any(0) & (here < 0).any(0)]
        if not len(both):
            raise LookupError("the leaves of the search are not those of a tree")
        neuron = int(both[0])
        nodes.append(neuron)
        on = signs[some, neuron] > 0
        waiting += [(some[on], [*path, neuron]), (some[~on], [*path, neuron])]
    return nodes, leaves


def box_tree(lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """The tree of halvings whose leaves are these boxes [leaves, inputs]: its nodes and its cuts
    in preorder, and the order in which it holds the boxes.

    Each box was halved in its middle, computed as here: the side is one that no leaf lies across.
    """
    nodes: list[int] = []
    cuts: list[float] = []
    order: list[int] = []
    waiting = [(np.arange(len(lower)), lower.min(0), upper.max(0))]
    while waiting:
        some, low, high = waiting.pop()
        if len(some) == 1:
            if (lower[some[0]] > low).any() or (upper[some[0]] < high).any():
                raise LookupError("the boxes of the search do not cover the domain")
            nodes.append(LEAF)
            order.append(int(some[0]))
            continue
        middle = (low + high) / 2
        below, above = upper[some] <= middle, lower[some] >= middle
        sides = np.flatnonzero((below | above).all(0) & below.any(0) & above.any(0))
        if not len(sides):
            raise LookupError("the boxes of the search are not those of a tree")
        side = int(sides[0])
        nodes.append(side)
        cuts.append(float(middle[side]))
        left, right = high.copy(), low.copy()
        left[side] = right[side] = middle[side]
        waiting += [(some[above[:, side]], right, high), (some[below[:, side]], low, left)]
    return np.array(nodes), np.array(cuts), np.array(order)
