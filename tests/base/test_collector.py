"""The collector rests inside, and is afterwards what it was before."""

from __future__ import annotations

import gc

import pytest

from fgp_vnn.base.collector import collector_paused


@pytest.mark.parametrize("before", [True, False])
def test_it_is_paused_and_then_as_before(before: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if before else gc.disable)()
        with pytest.raises(KeyError), collector_paused():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is before
    finally:
        (gc.enable if was else gc.disable)()


@pytest.mark.parametrize("keep", [True, False])
def test_what_was_made_is_scanned_again_unless_it_is_kept(keep: bool) -> None:
    was = gc.get_freeze_count()
    try:
        with collector_paused(keep):
            made: list[object] = [[]]
        assert any(made is found for found in gc.get_objects()) is not keep
    finally:
        if not was:
            gc.unfreeze()
