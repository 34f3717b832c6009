"""Networks of operators: bounds, affine forms and verdicts as those of the same dense network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor

from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.budget.capacity import rows_at_once
from fgp_vnn.domain.sets import Box, L2Ball
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network import Network, Operator, load_network
from fgp_vnn.query import Query
from fgp_vnn.regions.forms import gradient
from fgp_vnn.transform.stable import collapse
from tests.helpers.met import is_met
from tests.helpers.network_models import Builder
from tests.helpers.operator_cases import one_per_operator
from tests.helpers.small_networks import robustness_query, sample
from tests.helpers.solving import solve

SHAPE = (1, 2, 6, 6)
Body = Callable[[Builder], str]


def conv(b: Builder, x: str, channels: tuple[int, int], **attributes: Any) -> str:
    before, after = channels
    return str(b.op("Conv", x, b.random(after, before, 3, 3), b.random(after), **attributes))


def strided(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 3), strides=[2, 2], pads=[1, 1, 1, 1]))
    return str(b.op("Relu", conv(b, first, (3, 4), pads=[1, 1, 1, 1])))


def uneven(b: Builder) -> str:
    return str(b.op("Relu", conv(b, "x", (2, 3), strides=[2, 1], pads=[0, 1, 2, 0])))


def grouped(b: Builder) -> str:
    weight = b.random(4, 1, 3, 3)
    return str(b.op("Relu", b.op("Conv", "x", weight, group=2, dilations=[2, 2])))


def residual(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 2), pads=[1, 1, 1, 1]))
    second = b.op("Relu", conv(b, first, (2, 2), pads=[1, 1, 1, 1]))
    return str(b.op("Relu", b.op("Add", conv(b, second, (2, 2), pads=[1, 1, 1, 1]), first)))


def subtracted(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 2)))
    offset = b.op("Add", conv(b, first, (2, 2), pads=[1, 1, 1, 1]), b.random(1, 2, 1, 1))
    return str(b.op("Relu", b.op("Sub", first, offset)))


def pooled(b: Builder) -> str:
    first = b.op("Relu", conv(b, "x", (2, 3), pads=[1, 1, 1, 1]))
    return str(b.op("Relu", b.op("AveragePool", first, kernel_shape=[2, 2], strides=[2, 2])))


def normalised(b: Builder) -> str:
    parts = [b.positive(3), b.random(3), b.random(3), b.positive(3)]
    return str(b.op("Relu", b.op("BatchNormalization", conv(b, "x", (2, 3)), *parts)))


@dataclass(frozen=True)
class Net:
    """A body with its input shape and opset; three outputs are put behind it."""

    body: Body
    shape: tuple[int, ...] = SHAPE
    opset: int = 13


NETS = [Net(body) for body in (strided, uneven, grouped, residual, subtracted, pooled, normalised)]
IDS = [net.body.__name__ for net in NETS]

# Every operator of the loader's table, in its newest form.
# To bounds an operator is a linear map: its attributes are the business of the loader's tests.
SINGLE_IDS = [name for name, *_ in one_per_operator()]
SINGLE = [Net(case, shape, opsets[-1]) for _, shape, opsets, case in one_per_operator()]


@cache
def twins(net: Net, seed: int = 0) -> tuple[Network, Network]:
    """The same network of operators and of dense maps, with three outputs."""
    b = Builder(net.shape, net.opset, seed=seed)
    body = net.body(b)
    features = _size(b.model(body), net.shape)
    flat = b.op("Relu", b.op("Reshape", b.op("Sub", body, b.const(0.1)), b.ints(1, -1)))
    end = b.op("Gemm", flat, b.random(features, 3), b.random(3))
    with TemporaryDirectory() as folder:
        path = b.save(Path(folder) / "net.onnx", end)
        return load_network(path, dense_entries=0).network, load_network(path).network


def _size(model: onnx.ModelProto, shape: tuple[int, ...]) -> int:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (output,) = session.run(None, {"x": np.zeros(shape, dtype=np.float32)})
    return int(output.size)


def box_of(network: Network, radius: float, seed: int = 1) -> Box:
    generator = torch.Generator().manual_seed(seed)
    center = torch.rand(network.inputs, generator=generator, dtype=torch.float64)
    return Box(center - radius, center + radius)


def samples(box: Box, count: int = 200) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    part = torch.rand(count, len(box.lower), generator=generator, dtype=torch.float64)
    part[::2] = part[::2].round()  # corners
    return box.lower + part * (box.upper - box.lower)


@pytest.mark.parametrize("net", NETS, ids=IDS)
def test_operator_bounds_hold_at_samples_and_equal_the_dense_ones(net: Net) -> None:
    network, dense = twins(net)
    box = box_of(network, 0.05)
    bounds, expected = (
        root_bounds(network, box, budget=UNLIMITED),
        root_bounds(dense, box, budget=UNLIMITED),
    )
    assert_hold(network, bounds, samples(box))
    for ours, theirs in ((bounds.lower, expected.lower), (bounds.upper, expected.upper)):
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("net", SINGLE, ids=SINGLE_IDS)
def test_every_operator_is_bounded_as_in_the_dense_network(net: Net) -> None:
    """In a ball, where intervals are not exact; at the neurons that are unstable in both."""
    network, dense = twins(net)
    ball = L2Ball(box_of(network, 0.05).center, 0.1)
    bounds, expected = (
        root_bounds(network, ball, budget=UNLIMITED),
        root_bounds(dense, ball, budget=UNLIMITED),
    )
    assert_hold(network, bounds, sample(ball, 200, seed=2))
    for k, unstable in enumerate(expected.unstable()):
        assert bool((bounds.unstable()[k] | ~unstable).all())
        torch.testing.assert_close(bounds.lower[k][unstable], expected.lower[k][unstable])
        torch.testing.assert_close(bounds.upper[k][unstable], expected.upper[k][unstable])


def assert_hold(network: Network, bounds: LayerBounds, points: Tensor) -> None:
    assert any(isinstance(layer, Operator) for layer in network.layers)
    values = network.preactivations(points)
    for lower, upper, z in zip(bounds.lower, bounds.upper, values[:-1], strict=True):
        assert bool((lower <= z).all()) and bool((z <= upper).all())


@pytest.mark.parametrize("net", NETS, ids=IDS)
def test_operator_bounds_do_not_depend_on_the_memory(net: Net) -> None:
    network, _ = twins(net)
    box = box_of(network, 0.1)
    little = replace(UNLIMITED, memory=1)
    bounds, chunked = (root_bounds(network, box, budget=b) for b in (UNLIMITED, little))
    for a, b in zip(chunked.lower + chunked.upper, bounds.lower + bounds.upper, strict=True):
        torch.testing.assert_close(a, b)


def test_without_time_bounds_say_no_more_than_prior_ones() -> None:
    network, _ = twins(Net(strided))
    box = box_of(network, 0.1)
    late = root_bounds(network, box, budget=Budget.of(0.0, None))
    assert all(bool((bound == -torch.inf).all()) for bound in late.lower)
    assert all(bool((bound == torch.inf).all()) for bound in late.upper)
    intervals = root_bounds(network, box, worth=(), budget=UNLIMITED)
    kept = root_bounds(network, box, prior=intervals, budget=Budget.of(0.0, None))
    for a, b in zip(kept.lower + kept.upper, intervals.lower + intervals.upper, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("net", NETS + SINGLE, ids=IDS + SINGLE_IDS)
def test_operator_gradients_are_those_of_autograd(net: Net) -> None:
    network, _ = twins(net)
    x = samples(box_of(network, 0.5), 4).requires_grad_()
    rows = torch.eye(3, dtype=torch.float64)[[0, 1, 2, 1]]
    (expected,) = torch.autograd.grad((network(x) * rows).sum(), x)
    _, slope = gradient(network, x.detach(), rows)
    torch.testing.assert_close(slope, expected)


@pytest.mark.parametrize("net", NETS, ids=IDS)
def test_a_collapsed_operator_network_is_the_same_on_the_domain(net: Net) -> None:
    network, _ = twins(net)
    box = box_of(network, 0.05)
    query = robustness_query(network, box)
    small, _ = collapse(query, root_bounds(query.network, box, budget=UNLIMITED), budget=UNLIMITED)
    assert small.network.neurons < network.neurons
    x = samples(box)
    torch.testing.assert_close(small.network(x), query.network(x))


def test_a_network_that_would_be_too_large_is_not_collapsed() -> None:
    network, _ = twins(Net(strided))
    box = box_of(network, 0.05)
    query = robustness_query(network, box)
    bounds = root_bounds(query.network, box, budget=UNLIMITED)
    assert collapse(query, bounds, budget=replace(UNLIMITED, memory=4000)) == (query, bounds)


@pytest.mark.parametrize("radius", [0.002, 0.3])
@pytest.mark.parametrize("net", NETS, ids=IDS)
def test_operator_verdicts_are_those_of_the_dense_network(net: Net, radius: float) -> None:
    statuses = []
    for network in twins(net, seed=3):
        query = robustness_query(network, box_of(network, radius))
        verdict = solve(query, confirm_with(query), Settings(), Budget.of(10, None))
        statuses.append(verdict.status)
    assert statuses[0] == statuses[1]
    assert statuses[0] in ("sat", "unsat")


def confirm_with(query: Query) -> Confirm:
    """Takes the query's own network for the judge."""

    def confirm(points: Tensor) -> Counterexample | None:
        met = is_met(query, query.network(points.double())).any(-1)
        if not bool(met.any()):
            return None
        x = points[met][0].double()
        return Counterexample(x.numpy(), query.network(x.unsqueeze(0))[0].float().numpy())

    return confirm


def test_negative_factors_of_a_product_do_not_make_terms_negative(tmp_path: Path) -> None:
    builder = Builder([1, 3])
    product = builder.op(
        "Gemm", "x", builder.random(3, 4), builder.random(4), alpha=-2.0, beta=-1.0
    )
    path = builder.save(tmp_path / "factors.onnx", product)
    operator, dense = (load_network(path, dense_entries=n).network.output for n in (0, 1000))
    assert isinstance(operator, Operator)
    ones = torch.ones(3, dtype=torch.float64)
    torch.testing.assert_close(operator.magnitude([ones]), dense.magnitude([ones]))
    torch.testing.assert_close(operator.spread([ones]), dense.spread([ones]))
    assert bool((operator.spread([ones]) > 0).all())


def test_more_memory_takes_more_rows_and_at_least_one() -> None:
    network, _ = twins(Net(strided))
    few, many = (rows_at_once(network, 1, 1, limit) for limit in (100_000, 1_000_000))
    assert 1 <= few < many
    assert rows_at_once(network, 1, 1, 1) == 1
