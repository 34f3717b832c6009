"""What lines make of coefficients: an infinite offset is none, but only where it is used."""

from __future__ import annotations

from math import inf

import pytest
import torch

from fgp_vnn.bounds.lines import Lines, pull
from fgp_vnn.network.activations.powers import EXP


@pytest.mark.parametrize("rows", [1, 3], ids=["shared lines", "lines of their own"])
def test_an_infinite_offset_counts_where_its_coefficient_is_not_zero(rows: int) -> None:
    one = torch.ones(1, rows, 2).double()
    floor, ceiling = one * torch.tensor([-2.0, -inf]), one * torch.tensor([inf, 3.0])
    lines = Lines(one, one, ceiling, floor)
    coefficients = torch.tensor([[[1.0, 0.0], [0.0, 1e-9], [-1e-9, -1.0]]]).double()
    through, offset = pull(EXP, coefficients, lines, 2, torch.zeros(1, 3).double())
    assert torch.equal(through, coefficients)
    assert offset.tolist() == [[-2.0, -inf, -inf]]
