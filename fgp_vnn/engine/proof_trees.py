"""Builds the trees of a certificate from the leaves of a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.certificate.checker.trees import LEAF

Array = NDArray[Any]


def sign_tree(signs: Array) -> tuple[list[int], list[tuple[int, list[int]]]]:
    """A tree of splits whose leaves are these patterns [leaves, neurons]: its nodes in preorder,
    and for each leaf, in the same order, its pattern and the neurons on the path to it.

    If the patterns are the leaves of some tree, the neuron at its root is closed in all of them.
    Any neuron that is closed in all of them and has both signs can be the root: the patterns on
    either side are again the leaves of a tree.
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
    in preorder, and the order of the boxes in it.

    Each box was halved at its midpoint, computed as here: a cut is valid if no leaf crosses it.
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
