"""Random smooth networks against dense sampling: python scripts/evaluation/smooth_soundness.py.

Networks of all activations, products and softmax, with the attack off and no point ever confirmed,
so that the search can end on a broken property only with a wrong `unsat`. Half of the properties
are broken, by a millionth or a hundredth of the output's spread, at a point found by gradient
descent. Three things count as wrong: `unsat` although there is a sampled counterexample; a lower
bound of the output above a sampled value; an interval of a hidden neuron, over the box or a part of
it, that misses the value at a sampled input. The exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.settings import Settings
from fgp_vnn.strategy import Hidden, Inputs, Slopes, Strategy
from tests.helpers.smooth_networks import SmoothCase, smooth_case
from tests.helpers.solving import solve
from tests.helpers.ticking import Ticking

_ROUNDED = 1e-9  # rounding error of a sample in float64
_PLANTED = (0.5, -1e-6, 0.1, -0.01)  # margins relative to the spread; below 0: broken
_POINTS = 1000
_PARTS = 6  # of the box, over which neurons are bounded, too
_WAYS = {
    "auto": Strategy(),
    "neurons": Strategy(inputs=Inputs(few=-1, some=-1)),  # splits neurons first
    "worthwhile": Strategy(  # as if the network were large
        slopes=Slopes(intervals_first=0), hidden=Hidden(worthwhile=1, worth_gain=-1.0)
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Smooth networks against dense sampling.")
    parser.add_argument("--cases", type=int, default=5000, help="how many random networks")
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    parser.add_argument("--ticks", type=int, default=120, help="looks at the clock of a search")
    parser.add_argument("--broken", type=int, default=120, help="the same where nothing can end it")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    console, bad = Console(), list[str]()
    seen: Counter[tuple[str, bool, str]] = Counter()
    numbers = range(chosen.seed, chosen.seed + chosen.cases)
    for number in track(numbers, description="deciding", console=console):
        case = smooth_case(number, _POINTS, planted=_PLANTED, softmax=number % 5 == 0)
        name = f"case {number} ({', '.join(case.names)})"
        bad += [f"{name}: {what}" for what in _loose(case, number)]
        way = tuple(_WAYS)[number // len(_PLANTED) % len(_WAYS)]
        budget = Ticking(chosen.ticks if case.seen > 0 else chosen.broken)
        off, strategy = Settings(attack=False), _WAYS[way]
        verdict = solve(case.query, lambda points: None, off, budget, strategy)
        seen[way, case.seen <= 0, verdict.status] += 1
        if verdict.status == "unsat" and case.seen < -_ROUNDED:
            bad.append(f"{name}: {way} says unsat")
        elif verdict.status == "sat":
            bad.append(f"{name}: {way} says sat of a point that nobody confirmed")
    for (way, broken, status), count in sorted(seen.items()):
        sampled = "with" if broken else "without"
        console.print(f"{way}: {status} for {count} {sampled} a sampled counterexample")
    console.print(f"{chosen.cases} networks, {len(bad)} wrong")
    for line in bad:
        console.print(line, soft_wrap=True)
    return 1 if bad else 0


def _loose(case: SmoothCase, number: int) -> list[str]:
    """The bounds, over the box and over parts of it, that a sample contradicts, in words."""
    network, points = case.query.network, case.points
    box, wrong = _parts(case, number), list[str]()
    bounds = root_bounds(network, box, budget=UNLIMITED)
    rows = torch.ones(1, 1, 1, dtype=points.dtype)
    rounding, depth = Rounding(network, box, bounds), len(network.layers)
    least = backward(network, box, depth, rows, bounds.lines(), rounding=rounding).least
    inside = (points >= box.lower.unsqueeze(1)) & (points <= box.upper.unsqueeze(1))
    inside = inside.all(-1).unsqueeze(-1)  # [boxes, points, 1]
    *hidden, output = (z.nan_to_num(torch.nan, torch.nan, torch.nan) for z in _values(case))
    for k, z in enumerate(hidden):
        room = _ROUNDED * (1 + z.abs())
        under = z < bounds.lower[k].unsqueeze(1) - room
        over = z > bounds.upper[k].unsqueeze(1) + room
        if bool((inside & (under | over)).any()):
            wrong.append(f"a neuron of layer {k} leaves its interval")
    room = _ROUNDED * (1 + output.abs())
    if bool((inside & (output < least.reshape(-1, 1, 1) - room)).any()):
        wrong.append("an output is below its bound")
    return wrong


def _values(case: SmoothCase) -> list[Tensor]:
    return case.query.network.preactivations(case.points)


def _parts(case: SmoothCase, number: int) -> Box:
    """The whole box and random parts of it [boxes, inputs], half of them around the sample with the
    lowest output."""
    random = torch.Generator().manual_seed(number)
    whole = case.query.domain.box()
    count = len(whole.lower)
    centers = case.points[:_PARTS].clone()
    lowest = _values(case)[-1][:, 0].nan_to_num(torch.inf).argmin()
    centers[: _PARTS // 2] = case.points[lowest]
    share = torch.rand(2, _PARTS, count, generator=random, dtype=centers.dtype) ** 3
    lower = centers - share[0] * (centers - whole.lower)
    upper = centers + share[1] * (whole.upper - centers)
    lower = torch.cat([whole.lower.unsqueeze(0), torch.minimum(lower, centers)])
    return Box(lower, torch.cat([whole.upper.unsqueeze(0), torch.maximum(upper, centers)]))


if __name__ == "__main__":
    sys.exit(main())
