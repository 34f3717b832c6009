"""Random questions whose answer is known: by an exact oracle, or because it was planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from tests.helpers.exact import TOLERANCE, least_worst, polytope
from tests.helpers.random_networks import (
    KINDS,
    exact_preactivations,
    generator,
    grid_weights,
    normal,
    random_domain,
    random_network,
    random_rows,
    rationals,
    sample,
)

FAMILIES = ("random", "thin", "scaled", "boundary", "tie", "strict tie", "sliver", "l1")
WIDTHS = ((4, 3), (6,), (3, 2, 2), (5, 4), (2, 3, 2), ())
SHAPES = ((1,), (2,), (1, 2), (3,), (1, 1, 2), (2, 2))


@dataclass(frozen=True, eq=False)
class Case:
    """A query and its answer over the real numbers: sat, unsat, or unclear within tolerance."""

    family: str
    query: Query
    truth: str


@cache
def random_case(seed: int) -> Case:
    """Case number `seed`: the families take turns. Its truth takes long to find."""
    family = FAMILIES[seed % len(FAMILIES)]
    if family == "sliver":
        return Case(family, sliver(seed), "sat")
    if family == "tie":
        return Case(family, tie(seed), "sat")
    if family == "strict tie":
        return Case(family, tie(seed, strict=True), "unsat")
    query = _random_query(seed, family)
    truth = oracle(query)
    return Case(family, scaled(query, seed) if family == "scaled" else query, truth)


def oracle(query: Query) -> str:
    """The answer by mixed-integer programming, if it is clear of the solver's tolerance."""
    worst = least_worst(query, polytope(query.domain))
    return "unsat" if worst > TOLERANCE else "sat" if worst < -TOLERANCE else "unclear"


def _random_query(seed: int, family: str) -> Query:
    turn = seed // len(FAMILIES)
    inputs = 1 + turn % 3
    widths = WIDTHS[turn % len(WIDTHS)]
    network = random_network(seed, KINDS[turn % 3], inputs=inputs, widths=widths)
    kind = {"thin": "thin box", "l1": "l1"}.get(family, "box")
    domain = random_domain(seed, kind, inputs=inputs, size=(0.3, 1.0, 2.0)[turn % 3])
    if family == "boundary" and network.layers:
        network = through_center(network, domain)
    counts = SHAPES[(turn // 2) % len(SHAPES)]
    unsafe = random_rows(seed, 2, *counts, strict=turn % 5 == 0)
    shift = (0.0, 0.5, 1.0)[turn % 3]
    moved = [Conjunction(c.rows, c.limits - shift, c.strict) for c in unsafe]
    return ask(network, domain, near(network, domain, moved, seed) if turn % 2 else moved)


def near(
    network: Network, domain: Domain, unsafe: list[Conjunction], seed: int
) -> list[Conjunction]:
    """The same conjunctions moved so that each is met, or just missed, by the best sample."""
    y = network(sample(domain, 200, seed)).numpy()
    moved = []
    for i, c in enumerate(unsafe):
        worst = (y @ c.rows.T - c.limits).max(-1).min()
        moved.append(
            Conjunction(c.rows, c.limits + worst + (0.02, -0.02)[(seed + i) % 2], c.strict)
        )
    return moved


def scaled(query: Query, seed: int) -> Query:
    """Exactly the same function, with each hidden layer's values 2^e times as large."""
    powers = [2.0 ** int(e) for e in np.random.default_rng(seed).integers(-30, 31, 8)]
    scales = [1.0, *powers[: len(query.network.layers)], 1.0]
    output = query.network.output
    inner = getattr(output, "inner", output)
    maps = [_scale(m, scales, k) for k, m in enumerate((*query.network.layers, inner))]
    output = replace(output, inner=maps[-1])  # type: ignore[type-var]
    return replace(query, network=replace(query.network, layers=tuple(maps[:-1]), output=output))


def _scale(affine: AffineMap, scales: list[float], k: int) -> Dense:
    assert isinstance(affine, Dense)
    here = scales[k + 1]
    pairs = zip(affine.sources, affine.weights, strict=True)
    return Dense(
        affine.sources, tuple(w * (here / scales[s]) for s, w in pairs), affine.bias * here
    )


def through_center(network: Network, domain: Domain) -> Network:
    """The network with first-layer biases that put every neuron's boundary through the centre."""
    first = network.layers[0]
    assert isinstance(first, Dense)
    moved = replace(first, bias=-(first.weights[0] @ domain.center))
    return replace(network, layers=(moved, *network.layers[1:]))


def tie(seed: int, *, strict: bool = False) -> Query:
    """Conjunctions that are met where the output is what it is at one point of the domain, with
    equality in every row; where strict, by no output: r . y < c and -r . y < -c."""
    turn = seed // len(FAMILIES)
    inputs = 1 + turn % 3
    widths = WIDTHS[turn % (len(WIDTHS) - 1)]
    network = grid_weights(random_network(seed, KINDS[turn % 3], inputs=inputs, widths=widths))
    source = np.random.default_rng(seed)
    lower = source.integers(-8, 0, inputs) / 4
    upper = lower + source.integers(1, 9, inputs) / 4
    x = lower + (upper - lower) * source.choice([0.0, 0.25, 0.5, 1.0], inputs)
    domain = Box(torch.from_numpy(lower), torch.from_numpy(upper))
    y = network(torch.from_numpy(x).unsqueeze(0))[0].numpy()  # exact: few bits are in use
    unsafe = []
    for count in SHAPES[turn % len(SHAPES)]:
        rows = source.integers(-4, 5, (count, 2)) / 2
        rows = np.concatenate([rows, -rows[: 1 if turn % 2 or strict else 0]])
        unsafe.append(Conjunction(rows, rows @ y, np.full(len(rows), strict)))
    return ask(network, domain, unsafe)


def sliver(seed: int) -> Query:
    """A counterexample hidden in a tiny diamond: g = 1 + noise - peak, the peak 2 high."""
    source = generator(seed)
    turn = seed // len(FAMILIES)
    inputs, radius = 1 + turn % 3, (1e-2, 1e-3)[turn % 2]
    x = torch.rand(inputs, generator=source, dtype=torch.float64) * 2 - 1
    eye = torch.eye(inputs, dtype=torch.float64)
    noise = normal(source, 3, inputs)
    first = Dense((0,), (torch.cat([eye, -eye, noise]),), torch.cat([-x, x, -noise @ x]))
    distance = torch.cat([-torch.ones(2 * inputs), torch.zeros(3)]).double()
    second = Dense((1,), (distance.unsqueeze(0),), torch.tensor([radius]).double())
    ripple = torch.cat([torch.zeros(2 * inputs), 0.1 * torch.rand(3, generator=source)]).double()
    output = Dense(
        (1, 2),
        (torch.stack([ripple, -ripple]), torch.tensor([[-2 / radius], [0.0]]).double()),
        torch.tensor([1.0, 0.0]).double(),
    )
    box = Box(-torch.ones(inputs).double(), torch.ones(inputs).double())
    row = Conjunction(np.array([[1.0, 0.0]]), np.zeros(1), np.array([turn % 4 == 0]))
    far = Conjunction(
        np.array([[1.0, 1.0], [-1.0, 0.0]]), np.array([-5.0, -9.0]), np.zeros(2, bool)
    )
    return ask(Network((first, second), output, inputs), box, [row, far][: 1 + turn % 2])


def wrong(status: str, truth: str) -> bool:
    """Whether a verdict contradicts the truth; `unknown` and `timeout` never do."""
    return {status, truth} == {"sat", "unsat"}


def exact_confirm(query: Query) -> Callable[[Tensor], Counterexample | None]:
    """Accepts points, moved into the box, that meet a disjunct in rational arithmetic."""

    def confirm(points: Tensor) -> Counterexample | None:
        inside = query.domain.project(points.to(query.network.dtype))
        for x in inside:
            if bool(query.domain.contains(x)) and meets(query, rationals(x)):
                return Counterexample(x.numpy(), query.network(x.unsqueeze(0))[0].numpy())
        return None

    return confirm


def meets(query: Query, x: list[Fraction]) -> bool:
    """Whether a disjunct is met at x, over the rational numbers."""
    g = exact_preactivations(query.network, x)[-1]
    unmet = [v >= 0 if s else v > 0 for v, s in zip(g, query.strict.tolist(), strict=True)]
    failed = {d for d, bad in zip(query.disjunct.tolist(), unmet, strict=True) if bad}
    return len(failed) < query.disjuncts
