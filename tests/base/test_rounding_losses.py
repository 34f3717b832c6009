"""What underflow takes, where it is multiplied by large numbers or happens many times."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.bounds.backward import Rounding, backward, root_bounds
from fgp_vnn.bounds.forward import Forward
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.regions.forms import affine_forms


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
    batch = Box(one.unsqueeze(0), one.unsqueeze(0))
    assert float(Forward(ahead).bounds(batch).upper[2]) >= 0.02
    assert float(root_bounds(ahead, box, budget=UNLIMITED).upper[2]) >= 0.02
    pattern = [torch.ones(1, width, dtype=torch.bool) for width in ahead.widths]
    last = affine_forms(ahead, box, pattern)[-1]
    assert float(last.values + last.error) >= 0.02
