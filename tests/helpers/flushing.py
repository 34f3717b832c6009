"""Arithmetic in which small operands count as zero, and small results become zero."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch


def is_flushing() -> bool:
    """Whether tensors are computed like that now."""
    return not bool((torch.full((1,), 1e-39) / 2).view(torch.int32).any())


@contextmanager
def flushed() -> Iterator[None]:
    """As long as this lasts, tensors are computed like that; a processor that cannot is skipped."""
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
