"""Proofs about every float32 evaluation, where results underflow or are flushed to zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.network_models import Builder
from tests.transform.test_float32 import Single, bounds_at, forward, signs_apart


def kept(values: Single) -> Single:
    """Small numbers made zero, as some processors do with operands and with results."""
    return np.where(abs(values) < np.finfo(np.float32).tiny, np.float32(0), values)


def flushed(w: Single, x: Single, b: Single) -> Single:
    total = kept(b)
    for i in range(len(x)):
        total = kept(total + kept(kept(w[:, i]) * kept(x)[i]))
    return total


@pytest.mark.parametrize("seed", range(20))
def test_results_that_underflow_or_are_flushed_are_within_the_bounds(
    seed: int, tmp_path: Path
) -> None:
    """Every layer has a scale of its own; values stay below 1e30, and may be as small as can be."""
    source = np.random.default_rng(seed)
    builder, value, level = Builder([1, 3]), "x", 0.0
    layers: list[tuple[Single, ...]] = []
    for k in range(4):
        wanted = source.uniform(max(-44, level - 30), min(30, level + 35))
        shape = (3, 3)
        w = (source.normal(size=shape) * 10.0 ** (wanted - level)).astype(np.float32)
        b = (source.normal(size=3) * 10.0**wanted * (k % 2)).astype(np.float32)
        level = wanted
        value = builder.op("Gemm", value, builder.const(w), builder.const(b), transB=1)
        value = builder.op("Relu", value) if k < 3 else value
        layers.append((w, b))
    builder.save(tmp_path / "n.onnx", value)
    lower = source.uniform(-1, 1, 3).astype(np.float32)
    upper = lower + np.float32(0.01)
    low, high = bounds_at(tmp_path / "n.onnx", lower, upper)
    for x in (lower, upper, ((lower + upper) / 2).astype(np.float32)):
        for how in (flushed, forward, signs_apart):
            result = x
            for k, (w, b) in enumerate(layers):
                result = how(w, result, b)
                result = np.maximum(result, 0) if k < 3 else result
                result = kept(result) if how is flushed else result
            assert (low <= result).all() and (result <= high).all()
