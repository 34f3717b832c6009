"""How much memory each part takes under a small and under a large limit: run as a program.

Prints a JSON object of part -> [bytes under the small limit, bytes under the large one]. Its own
process, because what an earlier test has freed would be used again unseen.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from fgp_vnn.attack.descent import falsify
from fgp_vnn.bounds.hidden import refine_layers
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box, L2Ball
from fgp_vnn.network import Network, load_network
from fgp_vnn.query import Query
from fgp_vnn.regions.refute import Refuter
from fgp_vnn.regions.settle import Effort
from fgp_vnn.search.ball import Reporter, SearchBall
from fgp_vnn.search.distance import Distances
from fgp_vnn.search.hidden_neurons import Turn, sharpen_layers
from fgp_vnn.search.leaves import Leaves
from fgp_vnn.search.walk.walk import WalkOptions, walk_regions
from fgp_vnn.strategy import Ascent, Descent, Neurons, Slopes, Strategy
from tests.helpers.network_models import Builder
from tests.helpers.small_networks import random_network, robustness_query
from tests.helpers.solving import first_bounds, search_neurons

SMALL, LARGE = Budget(math.inf, 64 << 20), Budget(math.inf, 8 << 30)
ONCE = Ascent(steps=1)
QUICK = Strategy(
    slopes=Slopes(bundles=ONCE, values=ONCE, signs=ONCE), neurons=Neurons(candidates=1)
)


def nothing(points: torch.Tensor) -> None:
    return None


def query_of(*widths: int) -> Query:
    """A network with all neurons unstable."""
    center = torch.full((widths[0],), 0.5, dtype=torch.float64)
    return robustness_query(random_network(widths, 0), Box(center - 0.5, center + 0.5))


def loose(query: Query) -> LayerBounds:
    return root_bounds(query.network, query.domain, worth=(), budget=UNLIMITED)


def refine(budget: Budget) -> None:
    query = query_of(50, 700, 700, 4)
    refine_layers(query, loose(query), Slopes(rows=ONCE), budget)


def sharpen(budget: Budget) -> None:
    query = query_of(20, 400, 400, 4)
    sharpen_layers(query, loose(query), Turn(1), budget, QUICK)


def split(budget: Budget) -> None:
    query = query_of(20, 400, 400, 4)
    many = replace(QUICK, neurons=Neurons(candidates=1, batch=512, most=600))
    search_neurons(query, loose(query), nothing, budget, many)


def regions(budget: Budget) -> None:
    query = query_of(300, 300, 300, 4)
    signs = torch.ones(30, 600, dtype=torch.int8)
    disjunct = torch.zeros(30, dtype=torch.int64)
    leaves = Leaves(query, nothing, budget, Effort(10), Refuter(query, budget))
    leaves.decide(signs, disjunct)


def walk(budget: Budget) -> None:
    query = query_of(400, 500, 500, 4)
    steps = WalkOptions(regions=16, alternate=False, combined=False)
    walk_regions(query, loose(query), nothing, budget, steps)


def attack(budget: Budget) -> None:
    query = query_of(200, 600, 600, 100)
    falsify(query, nothing, budget, Descent(restarts=32, steps=1))


def condense(budget: Budget) -> None:
    first_bounds(query_of(50, 700, 700, 700, 4), budget)


def bundles(budget: Budget) -> None:
    query = query_of(20, 700, 700, 4)
    query = replace(query, domain=L2Ball(query.domain.center, 10.0))
    ball = SearchBall(query, loose(query), query.domain.center, 10.0)
    reporter = Reporter(lambda: 10.0, lambda level: None, lambda points: False)
    search = Distances(ball, reporter, budget, QUICK)
    search.start()
    search.run(lambda: search.bundles > 600)


@cache
def convolutions() -> Network:
    """Many neurons at one place, whose rows come down to a layer that is wide."""
    b = Builder((1, 1, 8, 8))
    wide = b.op("Relu", b.op("Conv", "x", b.random(256, 1, 3, 3), pads=[1] * 4))
    narrow = b.op("Relu", b.op("Conv", wide, b.random(8, 256, 5, 5), pads=[2] * 4))
    many = b.op("Relu", b.op("Conv", narrow, b.random(256, 8, 5, 5), strides=[8, 8]))
    return load_network(b.model(many), dense_entries=0).network


def patches(budget: Budget) -> None:
    network = convolutions()
    center = torch.full((64,), 0.5, dtype=torch.float64)
    worth = [torch.full((n,), k == 2) for k, n in enumerate(network.widths)]
    root_bounds(network, Box(center - 0.5, center + 0.5), worth=worth, budget=budget)


PARTS: dict[str, Callable[[Budget], None]] = {
    part.__name__: part
    for part in (refine, sharpen, split, regions, walk, attack, condense, bundles, patches)
}


def peak(part: Callable[[Budget], None], budget: Budget) -> int:
    """Bytes by which the process grew at most."""
    ctypes.CDLL(None).malloc_trim(0)  # what an earlier part has freed is not used again unseen
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is held now
    before = _status("VmRSS")
    part(budget)
    return _status("VmHWM") - before


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 0 if found is None else int(found[1]) * 1024


def main() -> None:
    torch.set_num_threads(1)
    convolutions()  # what loading takes is no part of it
    with torch.no_grad():
        result = {name: [peak(part, SMALL), peak(part, LARGE)] for name, part in PARTS.items()}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
