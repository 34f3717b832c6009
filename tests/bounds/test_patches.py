"""Backward rows of convolutions in windows: bounds as those of the same dense network."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds import patches
from fgp_vnn.bounds.cone import seen
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network import Operator
from fgp_vnn.network.maps.patches import Patches, PatchMap
from fgp_vnn.network.model import Dense
from fgp_vnn.strategy import COMMON
from tests.bounds.test_operators import Net, assert_hold, box_of, conv, samples, twins
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
    first = torch.zeros(1, dtype=torch.long)
    assert_close(bounds, whole.at(first))


@pytest.mark.parametrize(
    "net",
    [net for net in NETS if net.body not in (chain, nested)],  # which have the most rows
    ids=lambda net: net.body.__name__,
)
def test_bounds_by_patches_do_not_depend_on_the_memory(net: Net) -> None:
    network, _ = twins(net)
    box = box_of(network, 0.1)
    little = replace(UNLIMITED, memory=1)
    assert_close(*(root_bounds(network, box, budget=b) for b in (UNLIMITED, little)))


@every_net
def test_rows_at_a_place_are_no_more_at_once_than_end_in_time(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, _ = twins(net)
    box, most = box_of(network, 0.1), []
    whole = root_bounds(network, box, budget=UNLIMITED)
    plain = PatchMap.pull

    def pull(self: PatchMap, patch: Patches, places: Tensor) -> tuple[Patches | None, ...]:
        most.append(patch.rows.shape[1])
        return plain(self, patch, places)

    monkeypatch.setattr(PatchMap, "pull", pull)
    monkeypatch.setattr(patches, "COMMON", replace(COMMON, ascents=1))
    assert_close(root_bounds(network, box, budget=UNLIMITED), whole)
    assert max(most) == 2  # from below and from above


@every_net
def test_neurons_without_worth_keep_their_intervals_and_others_their_bounds(net: Net) -> None:
    network, _ = twins(net)
    box = box_of(network, 0.1)
    third = [torch.arange(width) % 3 == 0 for width in network.widths]
    some = root_bounds(network, box, worth=third, budget=UNLIMITED)
    assert_hold(network, some, samples(box))
    # Of the second layer, where what is known of the first one is the same.
    whole = root_bounds(network, box, budget=UNLIMITED)
    plain = root_bounds(network, box, worth=(), budget=UNLIMITED)
    torch.testing.assert_close(some.lower[1][:, third[1]], whole.lower[1][:, third[1]])
    torch.testing.assert_close(some.lower[1][:, ~third[1]], plain.lower[1][:, ~third[1]])


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
