"""Which device is used, and what is refused."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.base.errors import InputError
from fgp_vnn.engine.device import pick_device


def test_a_device_that_is_not_there_is_refused() -> None:
    assert pick_device("cpu", "float64") == torch.device("cpu")
    if not torch.cuda.is_available():
        assert pick_device("auto", "float64") == torch.device("cpu")
        with pytest.raises(InputError, match="cuda"):
            pick_device("cuda", "float64")


def test_a_device_without_float64_is_refused_in_float64() -> None:
    with pytest.raises(InputError, match="mps has no float64"):
        pick_device("mps", "float64")


def test_shortened_floats_are_switched_off() -> None:
    torch.backends.cudnn.allow_tf32 = True
    pick_device("cpu", "float64")
    assert not torch.backends.cudnn.allow_tf32
    assert not torch.backends.cuda.matmul.allow_tf32
