"""Classifiers: what is asked of the outputs about a class."""

from __future__ import annotations

from fractions import Fraction

import torch

from fgp_vnn.base.rounding import unit
from fgp_vnn.engine.classifier import margins
from fgp_vnn.network.model import Dense


def test_margins_are_off_by_at_most_their_roundings() -> None:
    """Differences of weights of all magnitudes, such as 1e10 + 1."""
    generator = torch.Generator().manual_seed(0)
    scale = 10.0 ** torch.randint(-12, 12, (4, 30), generator=generator).double()
    weight = torch.randn(4, 30, generator=generator, dtype=torch.float64) * scale
    made = margins(Dense((0,), (weight,), weight[:, 0].clone()), 1)
    assert isinstance(made, Dense) and made.terms is not None
    share, off = unit(torch.float64).share(made.rounded), 0
    for row, j in enumerate((0, 2, 3)):
        for column in range(30):
            exact = Fraction(float(weight[1, column])) - Fraction(float(weight[j, column]))
            lost = abs(Fraction(float(made.weights[0][row, column])) - exact)
            assert lost <= Fraction(share * float(made.terms[0][row, column]))
            off += lost > 0
    assert off > 10
