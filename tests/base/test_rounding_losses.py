"""What underflow takes, where it is multiplied by large numbers or happens many times."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.forward import Forward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Combination, Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.regions.forms import MapForms, affine_forms
from fgp_vnn.regions.triangular import triangular


def chain(*factors: float) -> Network:
    """One neuron per layer, in float32, its factors cast to that."""
    none = torch.zeros(1, dtype=torch.float64)
    maps = [Dense((k,), (none.reshape(1, 1) + f,), none) for k, f in enumerate(factors)]
    return Network(tuple(maps[:-1]), maps[-1], 1).to("cpu", torch.float32)


@pytest.mark.parametrize(
    ("factors", "row", "value"),
    [
        ((1e36, 1e-20, 1e-30), -1.0, 1e-14),  # a coefficient underflows
        ((1e36, 1.5e-46), -1e30, 1.5e20),  # a weight underflows when it is cast
        ((1e-30, 1e-20, 1e36), -1.0, 1e-14),  # a value underflows
    ],
)
def test_what_underflows_counts_times_what_it_is_multiplied_by(
    factors: tuple[float, ...], row: float, value: float
) -> None:
    network, box = chain(*factors), Box(torch.ones(1), torch.ones(1))
    bounds = root_bounds(network, box, budget=UNLIMITED)
    rows = torch.full((1, 1, 1), row)
    rounding = Rounding(network, box, bounds)
    passed = backward(network, box, len(factors) - 1, rows, bounds.lines(), rounding=rounding)
    assert -1e38 < float(passed.least) <= -value * 0.999


def all_on(network: Network, box: Box) -> MapForms:
    """The forms of the output in the region in which all neurons are on."""
    pattern = [torch.ones(1, width, dtype=torch.bool) for width in network.widths]
    return affine_forms(network, box, pattern)[-1]


def question(network: Network, box: Box) -> Query:
    """About a single row."""
    return Query(network, box, torch.zeros(1, dtype=torch.long), torch.zeros(1).bool(), 1)


def batch_of(box: Box) -> Box:
    return Box(box.lower.unsqueeze(0), box.upper.unsqueeze(0))


def test_a_factor_that_is_lost_when_it_is_cast_counts_in_forms() -> None:
    """No float32 is near 1.5e-46, which times 1e36 or 1e15 is far above what else is lost."""
    point = Box(torch.ones(1), torch.ones(1))
    value = all_on(chain(1e36, 1.5e-46), point)
    assert 1e30 > float(value.values + value.error) >= 1.5e-10
    assert 1e30 > Forward(chain(1e36, 1.5e-46, 1.0)).bounds(batch_of(point)).upper[1] >= 1.5e-10
    wide = Box(torch.full((1,), -1e15), torch.full((1,), 1e15))
    slope = all_on(chain(1.5e-46), wide)
    assert 1e30 > float(slope.values + slope.reach + slope.error) >= 1.5e-31
    assert 1e30 > Forward(chain(1.5e-46, 1.0)).bounds(batch_of(wide)).upper[0] >= 1.5e-31


def test_factors_that_cancel_once_they_are_cast_count_in_forms() -> None:
    """1/3 less the float32 next to it is -9.9e-9; in float32 it is 0, and so is every term."""
    third, none = torch.full((1, 1), 1 / 3, dtype=torch.float64), torch.zeros(1).double()
    less = Dense((0,), (torch.cat([third, -third.float().double()], 1),), none)
    last = Dense((1,), (torch.ones(1, 1).double(),), none)
    point = Box(torch.ones(2), torch.ones(2))
    value = all_on(Network((), less, 2).to("cpu", torch.float32), point)
    assert -1e-3 < float(value.values - value.error) <= -9.9e-9
    ahead = Forward(Network((less,), last, 2).to("cpu", torch.float32))
    assert -1e-3 < float(ahead.bounds(batch_of(point)).lower[0]) <= -9.9e-9


def test_a_lost_factor_counts_times_an_error_of_what_it_is_multiplied_by() -> None:
    """A neuron that is 0 but for a defect of 1e30, times 1.5e-46, which is 0 in float32."""
    none = torch.zeros(1, dtype=torch.float64)
    first = Dense((0,), (none.reshape(1, 1),), none, none + 1e30)
    second = Dense((1,), (none.reshape(1, 1) + 1.5e-46,), none)
    network = Network((first,), second, 1).to("cpu", torch.float32)
    point = Box(torch.ones(1), torch.ones(1))
    assert 1e30 > float(all_on(network, point).error) >= 1.5e-16
    assert 1e30 > float(triangular(question(network, point)).error[-1]) >= 1.5e-16
    rows = Combination(first, second.weights[0], none)
    alone = Network((), rows, 1).to("cpu", torch.float32)
    assert 1e30 > float(all_on(alone, point).error) >= 1.5e-16
    plain = Rounding(alone, point, LayerBounds((), ()))
    assert 1e30 > float(plain.of_map(0, torch.ones(1, 1, 1))) >= 1.5e-16


def test_a_defect_is_part_of_bounds_that_go_forward() -> None:
    """A neuron that is 0 but for a defect of 0.1, and a neuron that is three times it."""
    one, none = torch.ones(1, 1), torch.zeros(1)
    first = Dense((0,), (0 * one,), none, none + 0.1)
    network = Network((first, Dense((1,), (3 * one,), none)), Dense((2,), (one,), none), 1)
    point = Box(none, none)
    intervals = root_bounds(network, point, worth=(), budget=UNLIMITED)
    for bounds in (intervals, Forward(network).bounds(batch_of(point))):
        assert 0.101 > bounds.upper[0] >= 0.1 and -0.101 < bounds.lower[0] <= -0.1
        assert 0.301 > bounds.upper[1].double() >= 3 * (none + 0.1).double()
    assert (
        0.301 > triangular(question(network, point)).error[1].double() >= 3 * (none + 0.1).double()
    )


def test_an_error_of_the_walk_that_is_no_number_is_infinite() -> None:
    """0 times an overflow, and a defect."""
    none, weights = torch.zeros(2), torch.tensor([[3e38], [0.0]])
    first = Dense((0,), (weights,), none, torch.tensor([0.0, 0.1]))
    network = Network((first,), Dense((1,), (torch.tensor([[0.0, 1.0]]),), none[:1]), 1)
    wide = Box(torch.full((1,), -4.0), torch.full((1,), 4.0))
    assert triangular(question(network, wide)).error[-1] == torch.inf


def test_half_of_the_narrowest_interval_counts_times_its_weight() -> None:
    """An input in [0, 2^-149], whose half is 0 in float32, times 1e36."""
    one, none = torch.ones(1, 1), torch.zeros(1)
    second = Dense((0, 1), (1e36 * one, 0 * one), none)
    layers = (Dense((0,), (one,), none), second)
    network = Network(layers, Dense((2,), (one,), none), 1)
    narrow = Box(none, none + 2.0**-149)
    bounds = root_bounds(network, narrow, worth=(), budget=UNLIMITED)
    assert 1.0 > bounds.upper[1] >= 1.4e-9


def test_every_product_that_is_flushed_counts() -> None:
    """200 products a little below the smallest normal number, times 1e34: together 0.02."""
    wide, one = torch.full((200, 1), 1e-19), torch.ones(1)
    back = Network(
        (
            Dense((0,), (torch.full((1, 1), 1e34),), torch.zeros(1)),
            Dense((1,), (wide,), torch.zeros(200)),
        ),
        Dense((2,), (1.1 * wide.T,), torch.zeros(1)),
        1,
    )
    box = Box(one, one)
    bounds = root_bounds(back, box, budget=UNLIMITED)
    rounding = Rounding(back, box, bounds)
    passed = backward(back, box, 2, -one.reshape(1, 1, 1), bounds.lines(), rounding=rounding)
    assert float(passed.least) <= -0.02
    ahead = Network(
        (
            Dense((0,), (wide,), torch.zeros(200)),
            Dense((1,), (1.1 * wide.T,), torch.zeros(1)),
            Dense((2,), (torch.full((1, 1), 1e34),), torch.zeros(1)),
        ),
        Dense((3,), (one.reshape(1, 1),), torch.zeros(1)),
        1,
    )
    assert float(Forward(ahead).bounds(batch_of(box)).upper[2]) >= 0.02
    assert float(root_bounds(ahead, box, budget=UNLIMITED).upper[2]) >= 0.02
    last = all_on(ahead, box)
    assert float(last.values + last.error) >= 0.02
