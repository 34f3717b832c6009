"""The tests of rounding where small operands count as zero, and small results become zero."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

from tests.helpers.command_line import ENVIRONMENT
from tests.helpers.places import ROOT

FILES = ("test_rounding_losses.py", "test_rounding.py", "test_rounding_domains.py")


@pytest.mark.slow
def test_bounds_hold_where_small_numbers_are_flushed(warm_python: str) -> None:
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush")
    torch.set_flush_denormal(False)
    paths = [str(Path(__file__).with_name(name)) for name in FILES]
    program = (
        "import sys, torch, pytest; assert torch.set_flush_denormal(True); "
        f"sys.exit(pytest.main(['-q', '-x', '-p', 'no:cacheprovider', *{paths!r}]))"
    )
    done = subprocess.run(
        [warm_python, "-c", program],
        capture_output=True,
        text=True,
        timeout=600,
        env=ENVIRONMENT,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
