"""Trees of splits: what their leaves cover, and trees that are not whole."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.trees import LEAF, box_levels, sign_leaves
from fgp_vnn.engine.proof_trees import box_tree, sign_tree

NEURONS = 5


def random_patterns(generator: np.random.Generator) -> np.ndarray:
    """The leaves of a random tree of splits, shuffled."""
    patterns = [np.zeros(NEURONS, dtype=np.int8)]
    for _ in range(generator.integers(0, 12)):
        index = int(generator.integers(len(patterns)))
        free = np.flatnonzero(patterns[index] == 0)
        if len(free):
            parent, neuron = patterns.pop(index), generator.choice(free)
            for sign in (-1, 1):
                patterns.append(parent.copy())
                patterns[-1][neuron] = sign
    generator.shuffle(patterns)
    return np.array(patterns)


@given(st.integers(0, 10**6))
def test_leaves_of_a_search_become_a_tree_that_covers_every_sign(seed: int) -> None:
    patterns = random_patterns(np.random.default_rng(seed))
    nodes, order = sign_tree(patterns)
    leaves = sign_leaves(np.array(nodes, dtype=np.int32), NEURONS, 1)
    assert sorted(leaf for leaf, _ in order) == list(range(len(patterns)))
    read = np.zeros((len(leaves.tree), NEURONS), dtype=np.int8)
    read[leaves.leaf, leaves.neuron] = leaves.sign
    assert (read == patterns[[leaf for leaf, _ in order]]).all()
    for signs in product((-1, 1), repeat=NEURONS):
        assert ((read == 0) | (read == np.array(signs))).all(1).any()


def test_leaves_that_leave_something_out_are_no_tree() -> None:
    for patterns in ([[1, 0]], [[1, 0], [1, 1]], [[1, 0], [0, -1]], [[1, 1], [-1, 0]]):
        with pytest.raises(LookupError):
            sign_tree(np.array(patterns, dtype=np.int8))


@pytest.mark.parametrize(
    ("nodes", "trees"),
    [
        ([], 1),
        ([0], 1),
        ([0, LEAF], 1),
        ([0, LEAF, LEAF, LEAF], 1),
        ([LEAF], 2),
        ([0, 0, LEAF, LEAF, LEAF], 1),
        ([7, LEAF, LEAF], 1),
        ([-2, LEAF, LEAF], 1),
    ],
)
def test_a_tree_of_signs_that_is_not_whole_is_refused(nodes: list[int], trees: int) -> None:
    with pytest.raises(InputError):
        sign_leaves(np.array(nodes, dtype=np.int32), NEURONS, trees)


def random_boxes(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    boxes = [(np.zeros(3), np.array([1.0, 2.0, 3.0]))]
    for _ in range(generator.integers(0, 30)):
        lower, upper = boxes.pop(int(generator.integers(len(boxes))))
        side = int(generator.integers(3))
        left, right = upper.copy(), lower.copy()
        left[side] = right[side] = ((lower + upper) / 2)[side]
        boxes += [(lower, left), (right, upper)]
    generator.shuffle(boxes)
    lower, upper = zip(*boxes, strict=True)
    return np.array(lower), np.array(upper)


@given(st.integers(0, 10**6))
def test_boxes_of_a_search_become_a_tree_with_the_same_boxes(seed: int) -> None:
    lower, upper = random_boxes(np.random.default_rng(seed))
    nodes, cuts, order = box_tree(lower, upper)
    root = np.zeros(3), np.array([1.0, 2.0, 3.0])
    volume = 0.0
    signs: list[np.ndarray] = []  # the boxes of the level before
    for level in box_levels(nodes.astype(np.int32), cuts, *root):
        for box in range(len(level.leaf)):
            if signs:
                around = level.around[box]
                assert (signs[0][around] <= level.lower[box]).all()
                assert (level.upper[box] <= signs[1][around]).all()
            if level.leaf[box] != LEAF:
                origin = order[level.leaf[box]]
                assert (level.lower[box] == lower[origin]).all()
                assert (level.upper[box] == upper[origin]).all()
                volume += float((level.upper[box] - level.lower[box]).prod())
        signs = [level.lower, level.upper]
    assert volume == 6.0  # all halvings are exact


def test_boxes_that_leave_something_out_are_no_tree() -> None:
    lower, upper = random_boxes(np.random.default_rng(1))
    assert len(lower) > 4
    with pytest.raises(LookupError):
        box_tree(lower[1:], upper[1:])


@pytest.mark.parametrize(
    ("nodes", "cuts"),
    [
        ([], []),
        ([0, LEAF], [0.5]),
        ([0, LEAF, LEAF, LEAF], [0.5]),
        ([LEAF], [0.5]),
        ([0, LEAF, LEAF], []),
        ([0, LEAF, LEAF], [0.5, 0.5]),
        ([0, LEAF, LEAF], [0.0]),
        ([0, LEAF, LEAF], [1.0]),
        ([0, LEAF, LEAF], [7.0]),
        ([0, LEAF, LEAF], [np.nan]),
        ([0, 0, LEAF, LEAF, LEAF], [0.5, 0.75]),
        ([3, LEAF, LEAF], [0.5]),
        ([-2, LEAF, LEAF], [0.5]),
    ],
)
def test_a_tree_of_boxes_that_is_not_whole_is_refused(nodes: list[int], cuts: list[float]) -> None:
    root = np.zeros(3), np.ones(3)
    with pytest.raises(InputError):
        list(box_levels(np.array(nodes, dtype=np.int32), np.array(cuts), *root))
