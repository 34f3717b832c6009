"""Backward rows of convolutions in windows: bounds as those of the same dense network."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
import torch

from fgp_vnn.bounds.backward import LayerBounds, root_bounds
from fgp_vnn.bounds.cone import seen
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network import Operator
from fgp_vnn.network.model import Dense
from tests.bounds.test_operators import Net, assert_hold, box_of, conv, samples, twins
from tests.helpers.conv_networks import Twins, random_convolutions
from tests.helpers.extreme_networks import Exact, evaluate, exact
from tests.helpers.network_models import Builder

SHAPE = (1, 2, 11, 9)
AROUND = [1, 1, 1, 1]


def chain(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 3), pads=AROUND))
    second = b.op("Relu", conv(b, first, (3, 2), pads=AROUND))
    return str(b.op("Relu", conv(b, second, (2, 4), pads=AROUND)))


def strided(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 3), pads=AROUND))
    second = b.op("Relu", conv(b, first, (3, 2), strides=[2, 1], pads=[0, 1, 2, 0]))
    return str(b.op("Relu", conv(b, second, (2, 3), strides=[1, 2], pads=[1, 0, 0, 2])))


def dilated(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 4), pads=AROUND))
    weight = b.random(2, 2, 2, 3)
    return str(b.op("Relu", b.op("Conv", first, weight, group=2, dilations=[3, 1])))


def residual(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 3), pads=AROUND))
    second = b.op("Relu", conv(b, first, (3, 3), strides=[2, 2], pads=AROUND))
    near = b.op("Conv", first, b.random(2, 3, 1, 1), strides=[2, 2])
    return str(b.op("Relu", b.op("Sub", near, conv(b, second, (3, 2), pads=AROUND))))


def nested(b: Builder) -> str:
    """Two convolutions with zeros between them: what spills over the border is cut off."""
    first = b.op("Relu", conv(b, "x", (2, 2), pads=AROUND))
    inner = b.op("Add", conv(b, first, (2, 2), pads=AROUND), b.op("Identity", "x"))
    return str(b.op("Relu", conv(b, inner, (2, 2), pads=[2, 2, 2, 2])))


def pooled(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 3), pads=AROUND))
    wide = b.op("Pad", first, pads=[0, 0, 1, 0, 0, 0, 0, 1])
    mean = b.op("AveragePool", wide, kernel_shape=[2, 3], strides=[2, 2])
    return str(b.op("Relu", conv(b, mean, (3, 2), pads=AROUND)))


def normalised(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 3), pads=AROUND))
    parts = [b.random(3), b.random(3), b.random(3), b.positive(3)]
    return str(b.op("Relu", b.op("BatchNormalization", conv(b, first, (3, 3)), *parts)))


BODIES = (chain, strided, dilated, residual, nested, pooled, normalised)
# In an older opset, where the widths of a padding are attributes.
NETS = [Net(body, SHAPE, 10 if body is pooled else 13) for body in BODIES]
every_net = pytest.mark.parametrize("net", NETS, ids=[body.__name__ for body in BODIES])


def assert_close(ours: LayerBounds, theirs: LayerBounds) -> None:
    for a, b in zip(ours.lower + ours.upper, theirs.lower + theirs.upper, strict=True):
        torch.testing.assert_close(a, b)


@every_net
@pytest.mark.parametrize("radius", [0.01, 0.2])
def test_bounds_by_patches_are_those_of_the_dense_network(net: Net, radius: float) -> None:
    network, dense = twins(net)
    last = network.layers[-2]  # the last but the one that is flattened
    assert isinstance(last, Operator)
    assert last.patches is not None
    box = box_of(network, radius)
    bounds = root_bounds(network, box, budget=UNLIMITED)
    assert_hold(network, bounds, samples(box))
    if net.body not in (nested, pooled):  # whose matrices have tighter intervals than the programs
        assert_close(bounds, root_bounds(dense, box, budget=UNLIMITED))
    # Of two boxes at once, rows go over all neurons.
    both = Box(*(side.expand(2, -1) for side in (box.lower, box.upper)))
    whole = root_bounds(network, both, budget=UNLIMITED)
    assert_close(
        bounds, LayerBounds(*(tuple(b[:1] for b in s) for s in (whole.lower, whole.upper)))
    )


@every_net
def test_bounds_by_patches_do_not_depend_on_the_memory(net: Net) -> None:
    network, _ = twins(net)
    box = box_of(network, 0.1)
    little = replace(UNLIMITED, memory=1)
    assert_close(*(root_bounds(network, box, budget=b) for b in (UNLIMITED, little)))


@every_net
def test_neurons_without_worth_keep_their_intervals_and_others_their_bounds(net: Net) -> None:
    network, _ = twins(net)
    box = box_of(network, 0.1)
    third = [torch.arange(width) % 3 == 0 for width in network.widths]
    some = root_bounds(network, box, worth=third, budget=UNLIMITED)
    assert_hold(network, some, samples(box))
    # Of the second layer, where what is known of the first one is the same.
    whole = root_bounds(network, box, budget=UNLIMITED)
    plain = root_bounds(network, box, backward_pass=False, budget=UNLIMITED)
    torch.testing.assert_close(some.lower[1][:, third[1]], whole.lower[1][:, third[1]])
    assert torch.equal(some.lower[1][:, ~third[1]], plain.lower[1][:, ~third[1]])


@every_net
def test_neurons_that_no_output_sees_are_told_apart(net: Net) -> None:
    """Moving a neuron that is not seen moves no output; all others are seen."""
    network, dense = twins(net)
    first = Dense(network.output.sources, *_cut(dense.output))
    masks = seen(replace(network, output=first))
    assert not bool(masks[-1][5:].any()) and bool(masks[-1][:5].all())
    assert 0 < int(masks[0].sum()) < len(masks[0]) or net.body is strided
    rows = torch.zeros(1, dense.layers[-1].outputs, dtype=torch.float64)
    rows[:, :5] = 1
    for source, part in zip(dense.layers[-1].sources, dense.layers[-1].adjoint(rows), strict=True):
        assert not source or bool(masks[source - 1][part[0] != 0].all())


def _cut(output: object) -> tuple[tuple[torch.Tensor], torch.Tensor]:
    """An output that reads the first five neurons of its layer only."""
    assert isinstance(output, Dense)
    weight = output.weights[0].clone()
    weight[:, 5:] = 0
    return (weight,), output.bias


def corner_values(made: Twins, count: int) -> list[list[Exact]]:
    """z_1, ..., z_K at corners of the box, in exact arithmetic."""
    source = torch.Generator().manual_seed(count)
    found = []
    for _ in range(count):
        high = torch.rand(made.dense.inputs, generator=source) > 0.5
        x = torch.where(high, made.box.upper, made.box.lower)
        found.append(evaluate(made.dense, exact(x))[0])
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("powers", [0.0, 30.0])
def test_bounds_by_patches_hold_in_exact_arithmetic(dtype: torch.dtype, powers: float) -> None:
    scale = powers / 3 if dtype == torch.float32 else 3 * powers
    for seed in range(3):
        made = random_convolutions(seed, dtype, powers=scale)
        bounds = root_bounds(made.operators, made.box, budget=UNLIMITED)
        for before in corner_values(made, 3):
            for z, low, up in zip(before, bounds.lower, bounds.upper, strict=False):
                assert are_below(low, z) and are_below(-up, [-value for value in z])


def are_below(bound: torch.Tensor, values: Exact) -> bool:
    flat = bound.reshape(-1)
    finite = flat.isfinite().tolist()
    known = exact(torch.where(flat.isfinite(), flat, torch.zeros_like(flat)))
    return all(not ok or a <= v for ok, a, v in zip(finite, known, values, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_rounding_of_patches_is_covered_where_a_bound_is_attained(dtype: torch.dtype) -> None:
    """All neurons on in a single point: the bounds are the values, and rounding alone decides."""
    for seed in range(3):
        made = random_convolutions(seed, dtype, depth=3)
        point = Box(made.box.lower, made.box.lower)
        bounds = root_bounds(made.operators, point, budget=UNLIMITED)
        before = evaluate(made.dense, exact(point.lower))[0]
        for z, low, up in zip(before, bounds.lower, bounds.upper, strict=False):
            assert are_below(low, z) and are_below(-up, [-value for value in z])
            assert max(abs(v - Fraction(a)) for v, a in zip(z, low[0].tolist(), strict=True)) < 1
