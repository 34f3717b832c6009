"""The checker's arithmetic, against the same bounds in exact rational numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fgp_vnn.certificate.checker.bounds import Enclosure
from fgp_vnn.certificate.checker.lines import Leaf, Lines, lines
from fgp_vnn.certificate.checker.network import CheckedNetwork
from tests.certificate.maps import affine, exact, exact_values

Array = NDArray[np.float64]


def random_network(generator: np.random.Generator, *, spread: float) -> CheckedNetwork:
    """Layers that read the one before and, in part, the input; weights of very different sizes."""
    widths = [3, *generator.integers(2, 6, size=generator.integers(1, 4)), 2]
    maps = []
    for k, (before, after) in enumerate(pairwise(widths)):
        read = {k: before} if k == 0 or generator.random() < 0.5 else {k: before, 0: 3}
        weights = {}
        for s, count in read.items():
            scale = 10.0 ** generator.uniform(-spread, spread, size=(after, count))
            weights[s] = (generator.normal(size=(after, count)) * scale).astype(np.float32)
        bias = generator.normal(size=after).astype(np.float32)
        maps.append(affine(weights, bias))
    return CheckedNetwork(tuple(maps), 3)


def random_enclosure(seed: int, spread: float) -> tuple[np.random.Generator, Enclosure]:
    generator = np.random.default_rng(seed)
    network = random_network(generator, spread=spread)
    center = generator.normal(size=(1, 3))
    upper = center + generator.uniform(0, 0.3, size=(1, 3))
    return generator, Enclosure(network, center - 0.3, upper)


def random_leaves(
    generator: np.random.Generator, network: CheckedNetwork, count: int
) -> list[Leaf]:
    result = []
    for width in network.widths:
        shape = (count, width)
        slopes = np.where(generator.random(shape) < 0.3, np.nan, generator.random(shape))
        signs = generator.integers(-1, 2, size=shape).astype(np.int8)
        result.append(Leaf(slopes, signs, generator.exponential(size=shape) * (signs != 0)))
    return result


def exact_least(
    network: CheckedNetwork,
    box: tuple[Array, Array],
    target: int,
    row: Array,
    chosen: Sequence[Lines],
    leaves: Sequence[Leaf],
    leaf: int,
) -> Fraction:
    """The bound of one row in one leaf by the same lines, without rounding."""
    waiting = {s: exact(row) @ exact(w) for s, w in network.maps[target].weights.items()}
    constant = exact(row) @ exact(network.maps[target].bias)
    for k in range(target, 0, -1):
        if k not in waiting:
            continue
        coefficient = waiting.pop(k)
        low, chord, intercept = (exact(part[min(leaf, len(part) - 1)]) for part in chosen[k - 1])
        pressed = exact(leaves[k - 1].multipliers[leaf]) * exact(leaves[k - 1].signs[leaf])
        slope = np.where(coefficient > 0, low, chord)
        constant += (np.minimum(coefficient, 0) * intercept).sum()
        through = coefficient * slope - pressed
        constant += through @ exact(network.maps[k - 1].bias)
        for s, weight in network.maps[k - 1].weights.items():
            waiting[s] = waiting.get(s, Fraction(0)) + through @ exact(weight)
    slope = waiting.get(0, exact(np.zeros(network.inputs)))
    ends = np.minimum(slope * exact(box[0][0]), slope * exact(box[1][0]))
    return Fraction(constant + ends.sum())


@given(st.integers(0, 10**6), st.sampled_from([0.0, 3.0, 8.0]))
def test_bounds_are_below_the_exact_ones_and_close_to_them(seed: int, spread: float) -> None:
    generator, enclosure = random_enclosure(seed, spread)
    network, box = enclosure.network, enclosure.box
    leaves = random_leaves(generator, network, 3)
    target = len(network.widths)
    rows = generator.normal(size=(3, 1, 2))
    least = enclosure.least(target, rows, leaves)
    chosen = [
        lines(low, high, leaf)
        for low, high, leaf in zip(enclosure.lower, enclosure.upper, leaves, strict=True)
    ]
    size = float(np.abs(enclosure.output_size).max())
    for leaf in range(3):
        truth = exact_least(network, box, target, rows[leaf, 0], chosen, leaves, leaf)
        assert Fraction(float(least[leaf, 0])) <= truth
        if spread == 0:
            assert float(truth) - least[leaf, 0] < 1e-9 * (1 + size)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 3.0, 8.0]))
def test_no_point_of_the_box_is_outside_of_the_bounds(seed: int, spread: float) -> None:
    generator, enclosure = random_enclosure(seed, spread)
    network, box = enclosure.network, enclosure.box
    for _ in range(5):
        x = np.where(generator.random(3) < 0.5, box[0][0], box[1][0])
        for z, low, high in zip(
            exact_values(network, x), enclosure.lower, enclosure.upper, strict=False
        ):
            assert (exact(low[0]) <= z).all() and (z <= exact(high[0])).all()


@given(st.integers(0, 10**6))
def test_every_neuron_that_is_not_off_is_bounded_by_a_backward_pass(seed: int) -> None:
    _, enclosure = random_enclosure(seed, 0)
    for k, (low, high) in enumerate(zip(enclosure.lower, enclosure.upper, strict=True)):
        rows = np.eye(low.shape[-1])[None]
        below, above = enclosure.least(k, rows), -enclosure.least(k, -rows)
        wanted = high > 0
        assert (low >= below - 1e-9)[wanted].all()
        assert (high <= above + 1e-9)[wanted].all()


@given(st.floats(-1e6, 0, exclude_max=True), st.floats(0, 1e6, exclude_min=True))
def test_lines_enclose_the_relu_exactly(lower: float, upper: float) -> None:
    low, chord, intercept = lines(np.array([[lower]]), np.array([[upper]]))
    assert low[0, 0] in (0.0, 1.0)
    for z in (lower, upper):
        above = Fraction(float(chord[0, 0])) * Fraction(z) + Fraction(float(intercept[0, 0]))
        assert above >= max(Fraction(z), Fraction(0))


def test_signs_that_are_known_are_believed_and_tighten() -> None:
    generator = np.random.default_rng(3)
    network = random_network(generator, spread=0)
    box = -np.ones((2, 3)), np.ones((2, 3))
    signs = np.zeros((2, sum(network.widths)), dtype=np.int8)
    signs[1, 0] = 1
    enclosure = Enclosure(network, *box, signs)
    assert enclosure.lower[0][0, 0] < 0 <= enclosure.lower[0][1, 0]
    assert enclosure.signs()[1, 0] == 1


def test_values_out_of_range_are_an_error() -> None:
    maps = tuple(affine({k: [[1e60]]}, [0.0]) for k in range(2))
    with pytest.raises(OverflowError):
        Enclosure(CheckedNetwork(maps, 1), np.zeros((1, 1)), np.ones((1, 1)))


def test_what_is_found_in_a_box_does_not_depend_on_the_batch() -> None:
    network = random_network(np.random.default_rng(5), spread=0)
    generator = np.random.default_rng(1)
    center = generator.normal(size=(8, 3))
    lower, upper = center - 0.6 * generator.random((8, 3)), center + 0.1
    together = Enclosure(network, lower, upper)
    for box in range(8):
        alone = Enclosure(network, lower[box : box + 1], upper[box : box + 1])
        for k in range(len(network.widths)):
            np.testing.assert_allclose(together.lower[k][box], alone.lower[k][0], atol=1e-12)
            np.testing.assert_allclose(together.upper[k][box], alone.upper[k][0], atol=1e-12)
