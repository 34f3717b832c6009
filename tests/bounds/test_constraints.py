"""Constraints of bundles: what their multipliers add to a bound."""

from __future__ import annotations

from fractions import Fraction

import torch

from fgp_vnn.bounds.constraints import Constraints, constraints, folded
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.activations.sigmoids import TANH
from tests.helpers.random_networks import generator


def test_what_multipliers_add_to_a_constant_is_below_the_exact_sum() -> None:
    rounded_up = 0
    for seed in range(200):
        random = generator(seed)
        sign = torch.randint(-1, 2, (1, 1, 30), generator=random).double()
        beta = 10.0 ** (6 * torch.rand(1, 1, 30, generator=random).double() - 3)
        point = torch.randn(1, 1, 30, generator=random).double().float().double()
        known = Constraints(sign, point)
        triples = zip(*(part.flatten().tolist() for part in (sign, beta, point)), strict=True)
        exact = sum(Fraction(s) * Fraction(b) * Fraction(p) for s, b, p in triples)
        shift, proved = known.shift(beta), known.proved_shift(beta, 3)
        assert shift is not None and proved is not None
        assert Fraction(float(proved)) <= exact
        assert float(proved) >= float(shift) - 1e-9 * float((beta * point.abs()).sum())
        rounded_up += Fraction(float(shift)) > exact
    assert rounded_up > 20


def test_each_end_that_was_cut_is_a_constraint_on_its_side() -> None:
    inf = torch.inf
    signs = torch.tensor([[1, 0, -1]], dtype=torch.int8), torch.zeros(1, 2, dtype=torch.int8)
    ends = torch.zeros(1, 2, 3), torch.tensor([[[0.5, -inf], [inf, 2.0]]])
    found = constraints((RELU, TANH), signs, ends, torch.float64)
    assert found.sign.tolist() == [[[1, 0, -1, 1, 0, 0, -1]]]
    assert found.point is not None
    assert found.point.tolist() == [[[0, 0, 0, 0.5, 0, 0, 2.0]]]
    parts = torch.split(found.sign * torch.arange(7.0), [3, 4], -1)
    taken = [part.flatten().tolist() for part in folded((RELU, TANH), parts)]
    assert taken == [[0, 0, -2], [3, -6]]
