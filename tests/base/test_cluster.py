"""A cluster that cannot be reached is refused in one line, before Ray tries for half a minute."""

from __future__ import annotations

import socket

import pytest

from fgp_vnn.base.cluster import connected
from fgp_vnn.base.errors import InputError


@pytest.mark.parametrize("address", ["ray://127.0.0.1:{}", "127.0.0.1:{}"])
def test_an_address_at_which_nobody_listens_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason="needs pip install 'fgp-vnn[cluster]'")
    monkeypatch.setattr(ray, "init", lambda **given: pytest.fail("Ray was asked"))
    with socket.socket() as taken:  # a port that is nobody's once it is closed
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with (
        pytest.raises(InputError, match=r"cannot connect: .*refused") as refused,
        connected(address.format(port), None, "cpu"),
    ):
        pytest.fail("it is connected")
    assert "\n" not in str(refused.value)
