"""Every operator in a small random network, against onnxruntime."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch

from fgp_vnn.network import AffineMap, Dense, Network, Operator, load_network
from tests.helpers.agreement import assert_agrees
from tests.helpers.network_models import Builder
from tests.helpers.operator_agreement import AGREES, REFUSED, outcomes
from tests.helpers.operator_cases import CASES, Case, Row, one_per_operator
from tests.helpers.operator_choices import FAMILIES, random_operator

# Matrices at every opset at which the operator is written in another way. Maps that stay programs
# at the newest, with each attribute of the operators that have rules of their own for batches, and
# one row of every other.
ONCE = {name for name, *_ in one_per_operator()}
RULES = ("gemm", "conv", "average pool", "batch norm", "pad")
ROWS = [
    pytest.param(shape, opset, case, entries, id=f"{name}, opset {opset}, {form}")
    for name, shape, opsets, case in CASES
    for form, entries, some in (("matrices", 1000_000, opsets), ("operators", 0, opsets[-1:]))
    for opset in some
    if entries or name in ONCE or name.startswith(RULES)
]


@pytest.mark.parametrize(("shape", "opset", "case", "dense_entries"), ROWS)
def test_network_computes_what_onnxruntime_computes(
    tmp_path: Path, shape: tuple[int, ...], opset: int, case: Case, dense_entries: int
) -> None:
    builder = Builder(shape, opset)
    end = builder.op("Relu", builder.op("Sub", case(builder), builder.const(0.1)))
    end = builder.op("Mul", end, builder.const(-1.5))
    path = builder.save(tmp_path / "net.onnx", end)
    model = load_network(path, dense_entries=dense_entries)
    assert_agrees(model)
    for affine in (*model.network.layers, model.network.output):
        assert isinstance(affine, Dense if dense_entries else Operator)
        assert_adjoint(affine, model.network)


@pytest.mark.parametrize("row", one_per_operator(), ids=lambda row: row[0])
def test_operator_may_stand_at_the_end(tmp_path: Path, row: Row) -> None:
    _, shape, opsets, case = row
    builder = Builder(shape, opsets[-1])
    assert_agrees(load_network(builder.save(tmp_path / "net.onnx", case(builder))))


@pytest.mark.parametrize("first", range(len(FAMILIES)), ids=sorted(FAMILIES))
def test_an_operator_is_read_as_onnxruntime_runs_it_or_refused_by_name(first: int) -> None:
    """Both by the loader and by the checker; `operators.py` of scripts/evaluation runs more."""
    seen: Counter[str] = Counter()
    for number in range(first, 6 * len(FAMILIES), len(FAMILIES)):
        drawn = random_operator(number)
        for reader, outcome in outcomes(drawn).items():
            assert outcome in (AGREES, REFUSED), f"the {reader} {outcome}: {drawn.description}"
            seen[outcome] += 1
    assert seen[AGREES] > 0


def assert_adjoint(affine: AffineMap, network: Network) -> None:
    """<A v, r> = <v, A^T r>, with two batch dimensions."""
    sizes = (network.inputs, *network.widths)
    values = [torch.randn(2, 3, sizes[s], dtype=network.dtype) for s in affine.sources]
    rows = torch.randn(2, 3, affine.outputs, dtype=network.dtype)
    pulled = affine.adjoint(rows)
    left = (affine.linear(values) * rows).sum(-1)
    right = sum((v * p).sum(-1) for v, p in zip(values, pulled, strict=True))
    torch.testing.assert_close(left, right)
    zeros = [torch.zeros_like(v) for v in values]
    assert not affine.linear(zeros).any()
