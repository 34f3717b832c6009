"""How much memory the work may take, and how many rows fit into it."""

from __future__ import annotations

import os
from pathlib import Path

from fgp_vnn.network.model import Network

GIGABYTE = 1 << 30
DEFAULT = GIGABYTE  # bytes, where nothing was said
_COPIES = 6  # of a layer's coefficients that a backward pass holds at once


def budget(gigabytes: float | None) -> int:
    """Bytes: what was given, or half of what is free now."""
    return int(gigabytes * GIGABYTE) if gigabytes is not None else _available() // 2


def rows_at_once(network: Network, target: int, batch: int, limit: int) -> int:
    """How many rows of map number `target` a backward pass takes within `limit` bytes.

    It keeps one coefficient for each neuron below, and a few copies of the widest layer.
    """
    widths = (network.inputs, *network.widths[:target], network.maps[target].outputs)
    entries = sum(widths) + _COPIES * max(widths)
    return max(1, limit // (entries * network.output.bias.element_size() * max(batch, 1)))


def _available() -> int:
    """Bytes of memory that are free, as far as the system says so."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 2 * DEFAULT
