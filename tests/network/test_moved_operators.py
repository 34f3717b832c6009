"""Operators in another precision: copies of their own, which take memory once."""

from __future__ import annotations

import torch

from fgp_vnn.engine.parallel.messages import packed, unpacked
from fgp_vnn.network import Operator, load_network
from tests.helpers.network_models import Builder


def an_operator() -> Operator:
    b = Builder((1, 2, 5, 4))
    end = b.op("Conv", "x", b.random(3, 2, 2, 2), b.random(3))
    flat = b.op("Gemm", b.op("Flatten", end), b.random(36, 2), b.random(2))
    operator = load_network(b.model(flat), dense_entries=0).network.output
    assert isinstance(operator, Operator)
    return operator


def tensors_of(operator: Operator) -> list[torch.Tensor]:
    modules = (operator.module, operator.absolute)
    return [operator.bias, *(t for m in modules for t in m.state_dict().values())]


def test_operator_that_has_the_precision_already_is_not_copied() -> None:
    operator = an_operator()
    assert operator.to("cpu", torch.float64) is operator


def test_operator_in_single_precision_gives_the_same_up_to_rounding() -> None:
    operator = an_operator()
    single = operator.to("cpu", torch.float32)
    x = torch.linspace(-1, 1, 40, dtype=torch.float64)
    pairs = [
        (single([x.float()]), operator([x])),
        (single.magnitude([x.float().abs()]), operator.magnitude([x.abs()])),
    ]
    for ours, exact in pairs:
        torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=1e-5)
    assert all(t.dtype == torch.float32 for t in tensors_of(single) if t.is_floating_point())
    assert all(t.dtype == torch.float64 for t in tensors_of(operator) if t.is_floating_point())


def test_operator_that_was_used_here_gives_the_same_in_another_process() -> None:
    """By the same rules for its modules, and so with as many operations."""
    b = Builder((1, 2, 5, 4))
    end = b.op("Conv", "x", b.random(3, 2, 2, 2), b.random(3))
    end = b.op("AveragePool", end, kernel_shape=[2, 2])  # a sum that has no weights
    operator = load_network(b.model(b.op("Relu", end)), dense_entries=0).network.layers[0]
    assert isinstance(operator, Operator) and operator.patches is not None
    x, row = torch.linspace(-1, 1, 40, dtype=torch.float64), torch.ones(18, dtype=torch.float64)

    def results(of: Operator) -> list[torch.Tensor]:
        return [of([x]), of.magnitude([x.abs()]), *of.underflows([x.abs()]), *of.adjoint(row)]

    here, sent = results(operator), unpacked(packed(operator))
    assert all(torch.equal(one, other) for one, other in zip(here, results(sent), strict=True))
    assert sent.patches is not None and sent.operations == operator.operations
