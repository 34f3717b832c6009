"""The neurons that get tighter bounds first are those at which rows lose most."""

from __future__ import annotations

import torch

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.worth import worthwhile
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.product import Product
from fgp_vnn.network.activations.table import ACTIVATIONS
from fgp_vnn.network.model import Dense, Network


def chosen(network: Network, count: int) -> list[list[bool]]:
    size = torch.ones(network.inputs).double()
    box = Box(-size, size)
    bounds = root_bounds(network, box, budget=UNLIMITED)
    rows = torch.eye(network.outputs).double().unsqueeze(0)
    passed = backward(network, box, len(network.layers), rows, bounds.lines())
    return [mask.tolist() for mask in worthwhile(network, bounds, passed.coefficients, count)]


def layer(weight: list[list[float]]) -> Dense:
    return Dense((0,), (torch.tensor(weight).double(),), torch.zeros(len(weight)).double())


def test_the_widest_and_the_heaviest_come_first() -> None:
    first = layer([[1.0, 0.0], [3.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    for weights, most in (([1.0, 1.0, 1.0, 1.0], 1), ([1.0, 1.0, 100.0, 1.0], 2)):
        last = Dense((1,), (torch.tensor([weights]).double(),), torch.zeros(1).double())
        network = Network((first,), last, 2, (ACTIVATIONS["Sigmoid"]({}),))
        assert chosen(network, 1) == [[i == most for i in range(4)]]


def test_a_factor_of_several_products_has_what_all_of_them_lose() -> None:
    first = layer([[1.0, 0.0], [0.0, 1.0], [0.0, 0.9], [0.0, 0.9]])
    products = Product(torch.tensor([0, 0, 0]), torch.tensor([1, 2, 3]))
    last = Dense((1,), (torch.ones(1, 3).double(),), torch.zeros(1).double())
    assert chosen(Network((first,), last, 2, (products,)), 1) == [[True, False, False, False]]
