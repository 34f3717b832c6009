"""What the tests of models share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest


@pytest.fixture(scope="session", autouse=True)
def operators_listed_once() -> Iterator[None]:
    """torch's exporter reads the source and the signature of every operator for each model anew."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            from torch.onnx._internal.exporter import _registration, _schemas

            listed, read = "get_torchlib_ops", "op_signature_from_function"
            apis = vars(_registration)["onnxscript_apis"]
            for module, name in ((apis, listed), (_schemas, read)):
                patch.setattr(module, name, cache(getattr(module, name)))
        except (ImportError, AttributeError, KeyError):
            pass  # another torch, which takes its time
        yield
