"""Trees of splits, written as the list of their nodes in preorder.

A node is the number of what is split, and its two subtrees follow; LEAF has none. Whatever the
list says, the leaves of a whole tree cover what its root stands for: z <= 0 or z >= 0 for a neuron,
x <= cut or x >= cut for an input. So a reader has only to see that the tree is whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.certificate.operators import Array
from fgp_vnn.errors import InputError

LEAF = -1
STRIDE = 4  # levels of a tree of boxes between two at which bounds are computed for inner nodes

Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SignLeaves:
    """The leaves of several trees over neurons, in order."""

    tree: NDArray[np.int64]  # [leaves] the tree that each belongs to
    leaf: NDArray[np.int64]  # [assumptions] the leaf that each belongs to
    neuron: NDArray[np.int64]  # [assumptions]
    sign: NDArray[np.int8]  # [assumptions]


def sign_leaves(nodes: Numbers, neurons: int, trees: int) -> SignLeaves:
    """The leaves of so many trees over so many neurons, one list after the other."""
    tree: list[int] = []
    assumptions: list[tuple[int, int, int]] = []
    count = 0
    waiting: list[tuple[tuple[int, int], ...]] = []  # paths to nodes that are still to come
    for node in nodes.tolist():
        if not waiting:
            count += 1
            waiting.append(())
        path = waiting.pop()
        if node == LEAF:
            assumptions += [(len(tree), neuron, sign) for neuron, sign in path]
            tree.append(count - 1)
            continue
        if not 0 <= node < neurons:
            raise InputError(f"neuron {node} cannot be split here")
        if any(neuron == node for neuron, _ in path):
            raise InputError(f"neuron {node} is split twice")
        waiting += [(*path, (node, 1)), (*path, (node, -1))]
    if waiting or count != trees:
        raise InputError("a tree of splits is not whole")
    table = np.array(assumptions, dtype=np.int64).reshape(-1, 3)
    return SignLeaves(np.array(tree), table[:, 0], table[:, 1], table[:, 2].astype(np.int8))


@dataclass
class Level:
    """Boxes of a tree that are bounded together: some of its inner nodes, and leaves."""

    lower: list[Array] = field(default_factory=list)  # [inputs] each
    upper: list[Array] = field(default_factory=list)
    around: list[int] = field(default_factory=list)  # the box of the level before that holds it
    leaf: list[int] = field(default_factory=list)  # its number, or LEAF for an inner node

    def box(self, part: slice) -> tuple[Array, Array]:
        """Some of the boxes, [batch, inputs] each."""
        return np.stack(self.lower[part]), np.stack(self.upper[part])


def box_levels(nodes: Numbers, cuts: Array, lower: Array, upper: Array) -> Iterator[Level]:
    """The boxes of a tree of splits of inputs, level by level from the root.

    `cuts` [inner nodes] are where inputs are split, in preorder.
    """
    levels: list[Level] = []
    waiting = [(lower, upper, 0, 0)]  # a box, its depth, and the bounded box around it
    leaves = inner = 0
    for node in nodes.tolist():
        if not waiting:
            raise InputError("a tree of splits goes on after its end")
        low, high, depth, around = waiting.pop()
        if node == LEAF or depth % STRIDE == 0:
            while len(levels) <= -(-depth // STRIDE):
                levels.append(Level())
            level = levels[-(-depth // STRIDE)]
            level.lower.append(low)
            level.upper.append(high)
            level.around.append(around)
            level.leaf.append(leaves if node == LEAF else LEAF)
            around = len(level.leaf) - 1
        if node == LEAF:
            leaves += 1
            continue
        if not 0 <= node < len(lower) or inner >= len(cuts):
            raise InputError(f"input {node} cannot be split here")
        cut = float(cuts[inner])
        if not low[node] < cut < high[node]:
            raise InputError(f"input {node} is split at {cut}, which is not inside of its box")
        left, right = high.copy(), low.copy()
        left[node] = right[node] = cut
        waiting += [(right, high, depth + 1, around), (low, left, depth + 1, around)]
        inner += 1
    if waiting or inner != len(cuts):
        raise InputError("a tree of splits is not whole")
    yield from levels
