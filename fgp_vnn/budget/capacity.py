"""How many rows, boxes, regions or points fit into a memory limit.

All code whose memory grows with the network's width, the number of rows or time asks here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import torch

from fgp_vnn.network.model import Network
from fgp_vnn.strategy import COMMON

_COPIES = 6  # of a layer's coefficients that a backward pass holds at once
_ASCENT_COPIES = 20  # of a row's slopes that an ascent holds at once, with its moments and the best
_FORM_COPIES = 4  # of a region's affine forms, held at once


def rows_at_once(network: Network, target: int, batch: int, limit: int) -> int:
    """How many rows of map number `target` a backward pass can process within `limit` bytes.

    A row needs one coefficient for each neuron below and a few copies of the widest layer.
    """
    return _fit(limit, _row_entries(network, target) * max(batch, 1), network, COMMON.cached)


def ascents_at_once(network: Network, target: int, limit: int) -> int:
    """How many rows of map number `target` a gradient ascent can process within `limit` bytes."""
    below = network.inputs + sum(network.widths[:target])
    entries = _ASCENT_COPIES * below + _row_entries(network, target)
    return _fit(limit, entries, network, COMMON.ascents)


def boxes_at_once(network: Network, limit: int) -> int:
    """How many boxes can have all outputs bounded at once, by affine forms or backward passes."""
    rows = network.outputs * _row_entries(network, len(network.layers))
    forms = 2 * _COPIES * (network.inputs + 1) * max(network.widths, default=0)
    return _fit(limit, max(rows, forms), network)


def curved_at_once(network: Network, columns: int, limit: int) -> int:
    """How many boxes can have second-order forms of all values, with `columns` coefficients each,
    at once."""
    widths = (network.inputs, *network.widths, *network.value_widths, network.outputs)
    return _fit(limit, columns * (sum(widths) + _COPIES * max(widths)), network, COMMON.ascents)


def regions_at_once(network: Network, limit: int) -> int:
    """How many regions can have the affine forms of all neurons computed at once."""
    forms = (network.inputs + 1) * (network.neurons + network.outputs)
    return _fit(limit, _FORM_COPIES * forms, network)


def polyhedra_at_once(network: Network, limit: int) -> int:
    """How many regions can have their nearest points computed at once; each needs its affine forms,
    those of a clip box, and a linear system of the constraints that are active at a point."""
    columns = network.inputs + 1
    rows = network.neurons + network.outputs + 2 * network.inputs
    return _fit(limit, _FORM_COPIES * (columns * rows + min(columns, rows) ** 2), network)


def points_at_once(network: Network, limit: int) -> int:
    """How many points can go through a forward and a backward pass of the network at once."""
    entries = _row_entries(network, len(network.layers)) + network.neurons
    return _fit(limit, entries, network, COMMON.ascents)


def parts(count: int, some: int) -> Iterator[slice]:
    """Split range(count) into slices of at most `some`; one empty slice if `count` is 0."""
    for start in range(0, max(count, 1), max(some, 1)):
        yield slice(start, min(start + max(some, 1), count))


def cached_parts(count: int, entries: int, cached: int, device: torch.device) -> Iterator[slice]:
    """Split range(count), with `entries` numbers of 8 bytes per item, into slices: of `cached`
    bytes on a CPU, and a single slice on other devices."""
    return parts(count, cached // (8 * entries) if device.type == "cpu" else count)


def _row_entries(network: Network, target: int) -> int:
    widths = (network.inputs, *network.widths[:target], network.maps[target].outputs)
    return sum(widths) + _COPIES * max(widths)


def _fit(limit: int, entries: int, network: Network, on_cpu: int = sys.maxsize) -> int:
    """How many items of `entries` numbers each fit, at least 1. On a CPU the limit is at most
    `on_cpu` bytes, so that a batch stays in the caches and ends before the deadline."""
    if network.device.type == "cpu":
        limit = min(limit, on_cpu)
    if network.device.type == "cuda":
        limit = min(limit, torch.cuda.mem_get_info(network.device)[0] // 2)
    return max(1, limit // max(1, entries * network.output.bias.element_size()))
