"""Split trees, stored as the list of their nodes in preorder.

A node is the number of the neuron or input that is split, followed by its two subtrees; LEAF has
none. The leaves of a complete tree always cover the set of its root, whatever the numbers are: the
two sides of a split are z <= 0 and z >= 0 for a neuron, x <= cut and x >= cut for an input. So the
reader only has to check that the tree is complete.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.certificate.checker.forms import Array

LEAF = -1
MOST_NODES = 20_000_000  # in the trees of a step
MOST_ASSUMPTIONS = 50_000_000  # of all leaves: 850 MB
MOST_NUMBERS = 100_000_000  # in the boxes of a tree: 800 MB
STRIDE = 4  # inner nodes of a tree of boxes are bounded at every STRIDE-th depth

Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SignLeaves:
    """The leaves of several trees over neurons, in order."""

    tree: NDArray[np.int64]  # [leaves] the tree that each belongs to
    leaf: NDArray[np.int64]  # [assumptions] the leaf that each belongs to
    neuron: NDArray[np.int64]  # [assumptions]
    sign: NDArray[np.int8]  # [assumptions]


def sign_leaves(nodes: Numbers, neurons: int, trees: int) -> SignLeaves:
    """The leaves of `trees` trees over `neurons` neurons, whose lists `nodes` concatenates."""
    _check_count(nodes)
    tree, depths, found = array("i"), array("i"), array("i")
    signs = array("b")
    path, turned = array("i"), array("b")  # the neurons above a node, and the side taken at each
    above: set[int] = set()
    count, whole = 0, True
    for node in nodes.tolist():
        if whole:
            count, whole = count + 1, False
        if node != LEAF:
            if not 0 <= node < neurons:
                raise InputError(f"neuron {node} cannot be split here")
            if node in above:
                raise InputError(f"neuron {node} is split twice")
            above.add(node)
            path.append(node)
            turned.append(-1)
            continue
        tree.append(count - 1)
        depths.append(len(path))
        found.extend(path)
        signs.extend(turned)
        if len(found) > MOST_ASSUMPTIONS:
            raise UnsupportedError("trees of splits are too deep to be checked")
        while turned and turned[-1] == 1:
            turned.pop()
            above.discard(path.pop())
        whole = not turned
        if turned:
            turned[-1] = 1
    if not whole or count != trees:
        raise InputError("a tree of splits is incomplete")
    leaf = np.repeat(np.arange(len(tree)), depths)
    return SignLeaves(np.array(tree, np.int64), leaf, np.array(found, np.int64), np.array(signs))


def _check_count(nodes: Numbers) -> None:
    if len(nodes) > MOST_NODES:
        raise UnsupportedError(f"a tree of {len(nodes):,} nodes is too large to be checked")


class Level(NamedTuple):
    """Boxes of a tree that are bounded together: first inner nodes, then leaves."""

    lower: Array  # [boxes, inputs]
    upper: Array
    around: NDArray[np.int64]  # [boxes] the inner node of the previous level that contains it
    leaf: NDArray[np.int64]  # [boxes] its number, or LEAF for an inner node


def box_levels(nodes: Numbers, cuts: Array, lower: Array, upper: Array) -> Iterator[Level]:
    """The boxes of a tree of input splits, level by level from the root.

    `cuts` [inner nodes] are the values at which inputs are split, in preorder.
    """
    _check_count(nodes)
    if 2 * len(nodes) * len(lower) > MOST_NUMBERS:
        raise UnsupportedError(f"{len(nodes):,} boxes are too many to be checked")
    inner: list[list[_Box]] = []  # by level
    leaves: list[list[_Box]] = []
    waiting = [(_Box(lower, upper, 0, LEAF), 0)]  # a box and its depth
    count = used = 0
    for node in nodes.tolist():
        if not waiting:
            raise InputError("a tree of splits continues after its end")
        box, depth = waiting.pop()
        level = -(-depth // STRIDE)
        while len(inner) <= level:
            inner.append([])
            leaves.append([])
        if node == LEAF:
            leaves[level].append(box._replace(leaf=count))
            count += 1
            continue
        around = box.around
        if depth % STRIDE == 0:
            around = len(inner[level])
            inner[level].append(box)
        if not 0 <= node < len(lower) or used >= len(cuts):
            raise InputError(f"input {node} cannot be split here")
        cut = float(cuts[used])
        used += 1
        if not box.lower[node] < cut < box.upper[node]:
            raise InputError(f"input {node} is split at {cut}, which is not inside of its box")
        left, right = box.upper.copy(), box.lower.copy()
        left[node] = right[node] = cut
        waiting.append((_Box(right, box.upper, around, LEAF), depth + 1))
        waiting.append((_Box(box.lower, left, around, LEAF), depth + 1))
    if waiting or used != len(cuts):
        raise InputError("a tree of splits is incomplete")
    for parts in zip(inner, leaves, strict=True):
        boxes = [box for part in parts for box in part]
        yield Level(*(np.array(column) for column in zip(*boxes, strict=True)))


class _Box(NamedTuple):
    lower: Array  # [inputs]
    upper: Array
    around: int
    leaf: int
