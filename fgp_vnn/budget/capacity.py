"""How many things fit into a share of the memory.

Everything whose size grows with a network's width, with the number of rows or with time asks here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import torch

from fgp_vnn.network.model import Network
from fgp_vnn.strategy import COMMON

_COPIES = 6  # of a layer's coefficients that a backward pass holds at once
_ASCENT_COPIES = 20  # of a row's slopes that an ascent holds at once, with its moments and the best
_FORM_COPIES = 4  # of a region's affine forms


def rows_at_once(network: Network, target: int, batch: int, limit: int) -> int:
    """How many rows of map number `target` a backward pass takes within `limit` bytes.

    It keeps one coefficient for each neuron below, and a few copies of the widest layer.
    """
    return _fit(limit, _row_entries(network, target) * max(batch, 1), network, COMMON.cached)


def ascents_at_once(network: Network, target: int, limit: int) -> int:
    """How many rows of map number `target` an ascent takes within `limit` bytes."""
    below = network.inputs + sum(network.widths[:target])
    entries = _ASCENT_COPIES * below + _row_entries(network, target)
    return _fit(limit, entries, network, COMMON.ascents)


def boxes_at_once(network: Network, limit: int) -> int:
    """How many boxes get bounds of all outputs, by forms or by backward passes, at a time."""
    rows = network.outputs * _row_entries(network, len(network.layers))
    forms = 2 * _COPIES * (network.inputs + 1) * max(network.widths, default=0)
    return _fit(limit, max(rows, forms), network)


def curved_at_once(network: Network, columns: int, limit: int) -> int:
    """How many boxes get forms of second order with so many columns of all values at a time."""
    widths = (network.inputs, *network.widths, *network.value_widths, network.outputs)
    return _fit(limit, columns * (sum(widths) + _COPIES * max(widths)), network, COMMON.ascents)


def regions_at_once(network: Network, limit: int) -> int:
    """How many regions get affine forms of all neurons at a time."""
    forms = (network.inputs + 1) * (network.neurons + network.outputs)
    return _fit(limit, _FORM_COPIES * forms, network)


def polyhedra_at_once(network: Network, limit: int) -> int:
    """How many regions get their nearest points at a time: their forms, with those of a clip box,
    and a linear system of the constraints that hold a point."""
    columns = network.inputs + 1
    rows = network.neurons + network.outputs + 2 * network.inputs
    return _fit(limit, _FORM_COPIES * (columns * rows + min(columns, rows) ** 2), network)


def points_at_once(network: Network, limit: int) -> int:
    """How many points go through the network and back at a time."""
    entries = _row_entries(network, len(network.layers)) + network.neurons
    return _fit(limit, entries, network, COMMON.ascents)


def parts(count: int, some: int) -> Iterator[slice]:
    """The numbers below `count` in runs of at most `some`; one run, though empty, of none."""
    for start in range(0, max(count, 1), max(some, 1)):
        yield slice(start, min(start + max(some, 1), count))


def cached_parts(count: int, entries: int, cached: int, device: torch.device) -> Iterator[slice]:
    """The same for numbers with so many entries of 8 bytes each: on a CPU in parts of `cached`
    bytes, on other devices all at once."""
    return parts(count, cached // (8 * entries) if device.type == "cpu" else count)


def _row_entries(network: Network, target: int) -> int:
    widths = (network.inputs, *network.widths[:target], network.maps[target].outputs)
    return sum(widths) + _COPIES * max(widths)


def _fit(limit: int, entries: int, network: Network, on_cpu: int = sys.maxsize) -> int:
    """How many things of so many entries fit; a CPU takes fewer bytes at once, so that they stay in
    its caches and a batch ends in time."""
    if network.device.type == "cpu":
        limit = min(limit, on_cpu)
    if network.device.type == "cuda":
        limit = min(limit, torch.cuda.mem_get_info(network.device)[0] // 2)
    return max(1, limit // max(1, entries * network.output.bias.element_size()))
