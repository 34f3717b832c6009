"""What the tests of models share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest


@pytest.fixture(scope="session", autouse=True)
def operators_listed_once() -> Iterator[None]:
    """torch's exporter reads the source of every operator for each model anew: half its time."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            from torch.onnx._internal.exporter._registration import ONNXRegistry

            kept = staticmethod(cache(ONNXRegistry.from_torchlib))
            patch.setattr(ONNXRegistry, "from_torchlib", kept)
        except (ImportError, AttributeError):
            pass  # another torch, which takes its time
        yield
