"""Time the walk per region on the paper's convolutional network.

python scripts/benchmarks/conv_walk.py             # 3,072 inputs, 6,244 neurons, 100 regions, l2
python scripts/benchmarks/conv_walk.py --regions 1000 --seed 3

The weights are random, since the time per region depends only on the shapes and on the number of
unstable neurons. The radius is doubled until there are enough regions to walk through.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import torch

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import L2Ball
from fgp_vnn.engine.classifier import margins
from fgp_vnn.network import Network, load_network
from fgp_vnn.query import Query
from fgp_vnn.search.walk.walk import WalkOptions, walk_regions
from fgp_vnn.transform.inputs import reduce_inputs
from fgp_vnn.transform.stable import collapse
from training.architectures import build
from training.export import to_onnx

SHAPE = (3, 32, 32)
CLASSES = 10


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the walk on a convolutional network.")
    parser.add_argument("--regions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    network, center = make_network(args.seed)
    print(f"{network.inputs} inputs, {network.neurons} neurons in {len(network.layers)} layers")
    radius = 0.01
    with torch.no_grad():
        while not measure(network, center, radius, args.regions):
            radius *= 2
    return 0


def make_network(seed: int) -> tuple[Network, torch.Tensor]:
    """The paper's network with random weights, and a random input."""
    torch.manual_seed(seed)
    model = build("conv_paper", SHAPE, CLASSES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        path.write_bytes(to_onnx(model, SHAPE, name="network").SerializeToString())
        network = load_network(path).network
    return network, torch.rand(network.inputs, dtype=torch.float64)


def measure(network: Network, center: torch.Tensor, radius: float, regions: int) -> bool:
    """Bound, collapse, reduce and walk; print the times if there were enough regions."""
    query = ask_all(network, center, radius)
    begin = time.perf_counter()
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    bounded = time.perf_counter()
    query, bounds = collapse(query, bounds, budget=UNLIMITED)
    query, _ = reduce_inputs(query)
    collapsed = time.perf_counter()
    outcome = walk(query, bounds, regions)
    end = time.perf_counter()
    if outcome.statistics["regions"] < regions:
        return False
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    small = query.network
    print(f"radius {radius}: {small.neurons} unstable neurons, {small.inputs} inputs left")
    print(f"bounds {bounded - begin:.2f} s, collapse {collapsed - bounded:.2f} s")
    print(f"{outcome.statistics['regions']} regions in {end - collapsed:.2f} s; peak {peak:.2f} GB")
    return True


def ask_all(network: Network, center: torch.Tensor, radius: float) -> Query:
    """The query whether another class than the centre's can win within the radius."""
    label = int(network(center.unsqueeze(0)).argmax())
    others = network.outputs - 1
    rows = Network(network.layers, margins(network.output, label), network.inputs)
    never = torch.zeros(others, dtype=torch.bool)
    return Query(rows, L2Ball(center, radius), torch.arange(others), never, others)


def walk(query: Query, bounds: LayerBounds, regions: int) -> Outcome:
    """Walk through `regions` regions; no candidate is confirmed, so the walk does not end early."""
    steps = WalkOptions(regions=regions, alternate=False)
    return walk_regions(query, bounds, lambda points: None, Budget.of(60, None), steps)


if __name__ == "__main__":
    sys.exit(main())
