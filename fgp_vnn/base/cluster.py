"""A connection to a Ray cluster, or to one that is started on this machine."""

from __future__ import annotations

import os
import socket
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fgp_vnn.base.errors import InputError, one_line

EMBEDDED = "local"
_LOOPBACK = "127.0.0.1"
_REACHED = 5.0  # seconds in which an address must answer
# Ray reads these when it is imported or started. The second makes it listen on the loopback address
# alone. With Ray's own niceness, 15, a worker beside a busy process gets a thirtieth of a core.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
}


@dataclass(frozen=True)
class Cluster:
    """A connection to Ray, and how many workers it can hold at once."""

    capacity: int
    resources: dict[str, int]  # of one worker, as Ray names them
    folder: str | None  # for the workers' files, if all workers are on this machine


@contextmanager
def connected(address: str, jobs: int | None, device: str) -> Iterator[Cluster]:
    """Join the cluster at `address`, or start one on this machine for the duration of the run."""
    embedded = address == EMBEDDED
    if embedded:
        os.environ.update(_ENVIRONMENT)
    try:
        import ray
    except ImportError as error:
        raise InputError("--cluster needs Ray: pip install 'fgp-vnn[cluster]'") from error
    with tempfile.TemporaryDirectory(prefix="fgp-vnn-", ignore_cleanup_errors=True) as folder:
        _join(ray, address, jobs, folder)
        try:
            yield _described(ray, address, jobs, device, folder if embedded else None)
        finally:
            ray.shutdown()


def _join(ray: Any, address: str, jobs: int | None, folder: str) -> None:
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    if address != EMBEDDED:
        _reach(address)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the error says the same
            if address == EMBEDDED:
                ray.init(
                    num_cpus=jobs or os.cpu_count(),
                    include_dashboard=False,
                    _node_ip_address=_LOOPBACK,
                    _temp_dir=folder,
                    **quiet,
                )
            else:
                ray.init(address=address, **quiet)
    except Exception as error:  # Ray raises many types when it cannot connect
        raise InputError(f"--cluster {address}: cannot connect: {one_line(error)}") from error


def _reach(address: str) -> None:
    """Refuse at once an address where nothing listens; Ray would retry for half a minute."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit() and int(port) < 1 << 16:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _REACHED):
                pass
        except OSError as error:
            raise InputError(f"--cluster {address}: cannot connect: {one_line(error)}") from error


def _described(
    ray: Any, address: str, jobs: int | None, device: str, folder: str | None
) -> Cluster:
    if folder is not None and ray.util.get_node_ip_address() != _LOOPBACK:
        raise InputError("Ray does not use the loopback address alone; start a cluster yourself")
    totals = ray.cluster_resources()
    unit = "GPU" if device != "cpu" and totals.get("GPU", 0) >= 1 else "CPU"
    capacity = int(totals.get(unit, 0))
    if capacity < 1:
        raise InputError(f"--cluster {address}: the cluster has no cores")
    resources = {"num_gpus": 1, "num_cpus": 0} if unit == "GPU" else {"num_cpus": 1}
    return Cluster(min(jobs or capacity, capacity), resources, folder)
