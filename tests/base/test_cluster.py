"""A cluster that cannot be reached is refused in one line, before Ray tries for half a minute."""

from __future__ import annotations

import socket
import warnings

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


def test_what_ray_warns_of_is_in_the_error_alone(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    ray = pytest.importorskip("ray", reason="needs pip install 'fgp-vnn[cluster]'")

    def refuse(**given: object) -> None:
        warnings.warn("Ray Client connection timed out", stacklevel=2)
        raise ConnectionError("ray client connection timeout")

    monkeypatch.setattr(ray, "init", refuse)
    with (
        pytest.raises(InputError, match="cannot connect: ray client connection timeout"),
        connected("auto", None, "cpu"),
    ):
        pytest.fail("it is connected")
    assert not len(recwarn)
