"""Questions that are no ties, with known answers, and all that decides them.

As a program: the decisions of the machine that it runs on, as JSON. Its arguments are the exact
radii of `RADII`, by norm, and which part of the cases is decided, counted from 0, of how many.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

import numpy as np

from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.outcome import Outcome
from fgp_vnn.base.robustness import Norm
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, L2Ball
from fgp_vnn.engine.settings import Settings
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.inputs import split_inputs
from fgp_vnn.strategy import Strategy
from radius_check import MAXIMUM, SHAPES
from tests.helpers.exact import TOLERANCE, Polytope, least_worst, polygon, polytope
from tests.helpers.random_cases import exact_confirm, near
from tests.helpers.random_networks import KINDS, random_domain, random_network, random_rows
from tests.helpers.small_networks import random_network as float32_network
from tests.helpers.small_networks import random_point
from tests.helpers.solving import search_neurons, solve

Decide = Callable[[Query], Outcome | Verdict]


def neurons(query: Query) -> Outcome:
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    return search_neurons(query, bounds, exact_confirm(query), UNLIMITED, Strategy(), lp=True)


def inputs(query: Query) -> Outcome:
    return split_inputs(query, exact_confirm(query), UNLIMITED, Subdivision(lp=True))


def pipeline(**settings: object) -> Decide:
    def decide(query: Query) -> Verdict:
        chosen = Settings(attack=False, lp=True, **settings)  # type: ignore[arg-type]
        return solve(query, exact_confirm(query), chosen, UNLIMITED)

    return decide


ENGINES: dict[str, Decide] = {
    "neurons": neurons,
    "inputs": inputs,
    "auto": pipeline(),
    "walk": pipeline(engine="walk"),
    "walk without alternating projections": pipeline(engine="walk", alternate=False),
    "first boundary": pipeline(engine="walk", variant="first-boundary", alternate=False),
}
ON_EVERY_MACHINE = ("neurons", "inputs", "walk without alternating projections")
DOMAINS = ("box", "thin box", "l2", "l1", "clipped l2", "clipped l1")
CASES = {
    f"{kind} {seed}{' close' if close else ''}": (kind, seed, close)
    for kind in DOMAINS
    for seed, close in ((0, True), (1, True), (3, True), (1, False))
}
RADII: dict[Norm, int] = {"l2": 2005, "linf": 2002, "l1": 2001}  # numbers of networks


def make_query(kind: str, seed: int, close: bool = False) -> Query:
    """A question about a domain of this kind in the plane; where close, one that is just met by
    the best of some samples, or missed where the seed is odd."""
    network = random_network(seed, KINDS[seed % 3], widths=((4, 3), (6,), (3, 2, 2))[seed % 3])
    unsafe = random_rows(seed, 2, *((1,), (2,), (1, 2))[seed % 3])
    domain = random_domain(seed, kind)
    shift = 0.7
    if close:
        unsafe, shift = near(network, domain, unsafe, seed), 0.04 * (seed % 2)
    moved = [Conjunction(c.rows, c.limits - shift, c.strict) for c in unsafe]
    return ask(network, domain, moved)


def truth(query: Query) -> str:
    """sat, unsat, or unclear, by polytopes in and around the domain."""
    inside, around = (least_worst(query, where) for where in _bounded_by(query))
    return "sat" if inside < -TOLERANCE else "unsat" if around > TOLERANCE else "unclear"


def _bounded_by(query: Query) -> tuple[Polytope, Polytope]:
    """A polytope in the domain and one around it."""
    domain = query.domain
    ball = domain.ball if isinstance(domain, Clipped) else domain
    if isinstance(ball, L2Ball):
        center = ball.center.numpy()
        pair = [polygon(center, ball.radius, outside=side) for side in (False, True)]
    else:
        pair = [polytope(ball)] * 2
    if isinstance(domain, Clipped):
        box = polytope(domain.clip)
        pair = [(np.vstack([a, box[0]]), np.append(b, box[1])) for a, b in pair]
    return pair[0], pair[1]


def suits(engine: str, query: Query) -> bool:
    return engine != "inputs" or isinstance(query.domain, Box)


def decisions(radii: Mapping[Norm, float], part: int, parts: int) -> dict[str, str]:
    """What the engines say of a part of the cases, of balls a little smaller and larger than a
    part of the exact radii, and of these radii."""
    said: dict[str, str] = {}
    for case, which in [*CASES.items()][part::parts]:
        query = make_query(*which)
        for name in ON_EVERY_MACHINE:
            if suits(name, query):
                said[f"{case}, {name}"] = ENGINES[name](query).status
    for norm, exact in [*radii.items()][part::parts]:
        widths = SHAPES[RADII[norm] % len(SHAPES)]
        network, x = float32_network(widths, RADII[norm]), random_point(widths[0], RADII[norm])
        certifier = Certifier.of(network, lp=True)
        for size in (0.99, 1.01):
            result = certifier.certify(x, epsilon=size * exact, norm=norm)
            said[f"{norm} ball of {size}"] = result.status
        for engine in ("walk", "split"):
            plain = Certifier.of(network, engine=engine)
            found = plain.radius(x, norm=norm, maximum=MAXIMUM[norm])
            held = found.lower <= exact * 1.0001 and found.upper >= exact * 0.9999
            said[f"{norm} radius, {engine}"] = found.ended if held else "wrong"
    return said


if __name__ == "__main__":
    json.dump(decisions(json.loads(sys.argv[1]), *map(int, sys.argv[2:])), sys.stdout)
