"""How much memory the work may take, how it is shared out, and how much fits into a share.

Everything whose size grows with a network's width, with the number of rows or with time asks here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fgp_vnn.network.model import Network

GIGABYTE = 1 << 30
DEFAULT = 4 * GIGABYTE  # bytes, where nothing was said
LEAST = 64 << 20  # bytes that the work gets, however little was said
_CACHED = 32 << 20  # bytes of a backward pass on a CPU: more rows at once were seen to be slower
_COPIES = 6  # of a layer's coefficients that a backward pass holds at once
_ASCENT_COPIES = 20  # of a row's slopes that an ascent holds at once, with its moments and the best
_FORM_COPIES = 4  # of a region's affine forms
_ADDRESSES, _RESIDENT, _DATA = 0, 1, 5  # columns of /proc/self/statm


@dataclass(frozen=True)
class Memory:
    """Bytes that the work may take, shared out to what is held at the same time."""

    total: int = DEFAULT

    @property
    def at_once(self) -> int:
        """For what is computed in one batch: bounds, ascents, forms, points of an attack."""
        return self.total // 2

    @property
    def waiting(self) -> int:
        """For what waits or is remembered: open bundles and boxes, regions queued and seen."""
        return self.total // 4

    @property
    def matrices(self) -> int:
        """For the matrices of a collapsed network."""
        return self.total // 4


USUAL = Memory()


def budget(gigabytes: float | None) -> Memory:
    """What was given, less what the process holds already, or half of what is free now.

    Nothing is free beyond the limits of the process.
    """
    if gigabytes is None:
        return Memory(max(LEAST, int(min(_available(), _allowed()) / 2)))
    return Memory(max(LEAST, int(gigabytes * GIGABYTE) - _held(_RESIDENT)))


def rows_at_once(network: Network, target: int, batch: int, limit: int) -> int:
    """How many rows of map number `target` a backward pass takes within `limit` bytes.

    It keeps one coefficient for each neuron below, and a few copies of the widest layer.
    """
    if network.device.type == "cpu":
        limit = min(limit, _CACHED)
    return _fit(limit, _row_entries(network, target) * max(batch, 1), network)


def ascents_at_once(network: Network, target: int, limit: int) -> int:
    """How many rows of map number `target` an ascent takes within `limit` bytes."""
    below = network.inputs + sum(network.widths[:target])
    return _fit(limit, _ASCENT_COPIES * below + _row_entries(network, target), network)


def boxes_at_once(network: Network, limit: int) -> int:
    """How many boxes get bounds of all outputs, by forms or by backward passes, at a time."""
    rows = network.outputs * _row_entries(network, len(network.layers))
    forms = 2 * _COPIES * (network.inputs + 1) * max(network.widths, default=0)
    return _fit(limit, max(rows, forms), network)


def regions_at_once(network: Network, limit: int) -> int:
    """How many regions get affine forms of all neurons at a time."""
    forms = (network.inputs + 1) * (network.neurons + network.outputs)
    return _fit(limit, _FORM_COPIES * forms, network)


def points_at_once(network: Network, limit: int) -> int:
    """How many points go through the network and back at a time."""
    return _fit(limit, _row_entries(network, len(network.layers)) + network.neurons, network)


def parts(count: int, some: int) -> Iterator[slice]:
    """The numbers below `count` in runs of at most `some`; one run, though empty, of none."""
    for start in range(0, max(count, 1), max(some, 1)):
        yield slice(start, min(start + max(some, 1), count))


def _row_entries(network: Network, target: int) -> int:
    widths = (network.inputs, *network.widths[:target], network.maps[target].outputs)
    return sum(widths) + _COPIES * max(widths)


def _fit(limit: int, entries: int, network: Network) -> int:
    return max(1, limit // max(1, entries * network.output.bias.element_size()))


def _available() -> int:
    """Bytes of memory that are free, as far as the system says so."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return DEFAULT


def _allowed() -> float:
    """Bytes that this process may take besides what it holds, by the limits it was given."""
    try:
        import resource

        limits = ((resource.RLIMIT_DATA, _DATA), (resource.RLIMIT_AS, _ADDRESSES))
        given = [(resource.getrlimit(limit)[0], _held(column)) for limit, column in limits]
    except (ImportError, AttributeError, OSError):
        return math.inf
    left = [limit - held for limit, held in given if limit != resource.RLIM_INFINITY]
    return max(0, min(left, default=math.inf))


def _held(column: int) -> int:
    """Bytes that this process holds, 0 where that cannot be seen."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[column])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
