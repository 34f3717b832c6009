"""The split search over bundles: close one open neuron at a time until linear bounds decide.

A record of the search is a pattern with open neurons and the disjunct that it is about. Both
children of a split are bounded together, with slopes and multipliers that start from their
parent's; a bundle with nothing left open is a region, and projections decide it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from fgp_vnn.ascent import Ascended, Ascent, Multipliers, ascend
from fgp_vnn.bounds import LayerBounds, backward
from fgp_vnn.deadline import Deadline
from fgp_vnn.falsify import offer
from fgp_vnn.query import Query
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.leaves import decide_regions
from fgp_vnn.search.outcome import Confirm, Outcome
from fgp_vnn.verdict import Counterexample

CLIMB = Ascent(steps=12, rate=0.2, decay=0.9)


@dataclass(frozen=True)
class Split:
    """How to split neurons."""

    batch: int = 256
    budget: int = 2 << 30  # bytes for waiting bundles
    ascent: Ascent = CLIMB
    candidates: int = 3  # neurons whose children are looked at before one is chosen


@dataclass(eq=False)
class _Search:
    query: Query
    bounds: LayerBounds
    confirm: Confirm
    deadline: Deadline
    split: Split
    frontier: Frontier
    rows: Tensor  # [disjuncts, most rows, outputs] unit rows of g, the last one repeated
    unsettled: int = 0
    statistics: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Bundles:
    """A batch of patterns and where their bounds start from."""

    disjunct: Tensor  # [bundles]
    signs: Tensor  # [bundles, neurons] int8: -1, +1, 0 for open
    alpha: Tensor  # [bundles, rows, neurons]
    beta: Tensor  # [bundles, rows, neurons]


def split_neurons(
    query: Query, bounds: LayerBounds, confirm: Confirm, deadline: Deadline, split: Split
) -> Outcome:
    """Search the regions of the domain in bundles; `bounds` are those of the whole domain."""
    search = _Search(
        query, bounds, confirm, deadline, split, Frontier(split.budget), _row_table(query)
    )
    search.statistics["bundles"] = 0
    found = _process(search, _root(search))
    while found is None and len(search.frontier):
        if deadline.expired():
            reason = f"time is up with {len(search.frontier)} bundles open"
            return Outcome("timeout", reason=reason, statistics=search.statistics)
        found = _process(search, _children(search, search.frontier.pop(split.batch // 2)))
    if found is not None:
        return Outcome("sat", found, statistics=search.statistics)
    if search.unsettled:
        reason = f"{search.unsettled} regions could not be settled by projections"
        return Outcome("unknown", reason=reason, statistics=search.statistics)
    return Outcome("unsat", statistics=search.statistics)


def _row_table(query: Query) -> Tensor:
    rows = [query.rows_of(d) for d in range(query.disjuncts)]
    most = max(len(r) for r in rows)
    padded = torch.tensor([r + [r[-1]] * (most - len(r)) for r in rows])
    eye = torch.eye(query.network.outputs, dtype=query.network.dtype)
    return eye[padded].to(query.network.device)


def _root(search: _Search) -> _Bundles:
    """One bundle per disjunct with everything open."""
    query, bounds = search.query, search.bounds
    count, most = search.rows.shape[:2]
    slopes = torch.cat([(up > -lo)[0] for lo, up in _pairs(bounds)])
    alpha = slopes.to(query.network.dtype).expand(count, most, -1).contiguous()
    signs = torch.zeros(count, query.network.neurons, dtype=torch.int8, device=alpha.device)
    disjunct = torch.arange(count, device=alpha.device)
    return _Bundles(disjunct, signs, alpha, torch.zeros_like(alpha))


def _pairs(bounds: LayerBounds) -> list[tuple[Tensor, Tensor]]:
    return list(zip(bounds.lower, bounds.upper, strict=True))


def _children(search: _Search, taken: dict[str, Tensor]) -> _Bundles:
    """Each record twice, with its chosen neuron off and on."""
    index = taken["neuron"].unsqueeze(-1)
    signs = torch.cat([taken["signs"].scatter(-1, index, s) for s in (-1, 1)])
    dtype = search.query.network.dtype
    return _Bundles(
        taken["disjunct"].repeat(2),
        signs,
        taken["alpha"].to(dtype).repeat(2, 1, 1),
        taken["beta"].to(dtype).repeat(2, 1, 1),
    )


def _process(search: _Search, bundles: _Bundles) -> Counterexample | None:
    """Bound a batch; close, confirm, settle or keep each of its bundles."""
    query = search.query
    search.statistics["bundles"] += len(bundles.signs)
    result, bounds = _bound(search, bundles)
    points = result.points.flatten(0, 1)
    found = offer(query, search.confirm, points, query.network(points))
    if found is not None:
        return found
    strict = query.strict[search.rows.argmax(-1)][bundles.disjunct]  # [bundles, rows]
    closed = torch.where(strict, result.least >= 0, result.least > 0).any(-1)
    crossing = torch.cat([mask.expand(len(closed), -1) for mask in bounds.unstable()], -1)
    full = ~closed & ~crossing.any(-1)
    if bool(full.any()):
        at = torch.nonzero(full).flatten()
        signs = _completed(bounds, bundles.signs)[at]
        found, unsettled = decide_regions(
            query, signs, bundles.disjunct[at], search.confirm, search.deadline
        )
        search.statistics["leaves"] = search.statistics.get("leaves", 0) + len(at)
        search.unsettled += unsettled
        if found is not None:
            return found
    _keep(search, bundles, result, bounds, crossing, torch.nonzero(~closed & ~full).flatten())
    return None


def _completed(bounds: LayerBounds, signs: Tensor) -> Tensor:
    """The signs of all neurons [bundles, neurons] where none is open any more."""
    lower = torch.cat([lo.expand(len(signs), -1) for lo in bounds.lower], -1)
    stable = torch.where(lower >= 0, 1, -1).to(torch.int8)
    return torch.where(signs == 0, stable, signs)


def _bound(search: _Search, bundles: _Bundles) -> tuple[Ascended, LayerBounds]:
    query = search.query
    widths = list(query.network.widths)
    signs = torch.split(bundles.signs, widths, -1)
    bounds = search.bounds.within(signs)
    begin = Multipliers(
        tuple(torch.split(bundles.alpha, widths, -1)), tuple(torch.split(bundles.beta, widths, -1))
    )
    result = ascend(
        query.network,
        query.domain,
        len(widths),
        search.rows[bundles.disjunct],
        bounds,
        signs=signs,
        begin=begin,
        ascent=search.split.ascent,
        done=lambda least: bool((least > 0).any(-1).all()) or search.deadline.expired(),
    )
    return result, bounds


def _keep(
    search: _Search,
    bundles: _Bundles,
    result: Ascended,
    bounds: LayerBounds,
    crossing: Tensor,
    at: Tensor,
) -> None:
    """Put the open bundles back, each with the neuron to be split next."""
    if not len(at):
        return
    best = result.least.argmax(-1)  # [bundles] the row that is nearest to closing
    score = torch.where(crossing, _scores(search, result, bounds, best), -torch.inf)[at]
    kept = _Bundles(
        bundles.disjunct[at],
        bundles.signs[at],
        torch.cat(result.multipliers.alpha, -1)[at],
        torch.cat(result.multipliers.beta, -1)[at],
    )
    neuron = _choose(search, kept, score)
    search.frontier.push(
        result.least.amax(-1)[at],
        disjunct=kept.disjunct,
        signs=kept.signs,
        alpha=kept.alpha.float(),
        beta=kept.beta.float(),
        neuron=neuron,
    )


def _scores(search: _Search, result: Ascended, bounds: LayerBounds, best: Tensor) -> Tensor:
    """How much each neuron's relaxation costs the bound, [bundles, neurons].

    What the chord's intercept takes away, and what the layer's bias would change if the neuron
    were on or off: the score of BaBSR (Bunel et al., 2020).
    """
    parts = []
    for k, line in enumerate(bounds.lines()):
        coefficient = result.coefficients.get(k + 1)
        if coefficient is None:
            parts.append(line.chord.new_zeros(len(best), line.chord.shape[-1]))
            continue
        chosen = coefficient[torch.arange(len(best), device=best.device), best]
        intercept = chosen.clamp(max=0) * line.intercept.squeeze(-2)
        offset = search.query.network.layers[k].bias * chosen
        slope = line.chord.squeeze(-2)
        bias = torch.maximum(offset * (slope - 1), offset * slope)
        parts.append((intercept - bias).abs())
    return torch.cat(parts, -1)


def _choose(search: _Search, kept: _Bundles, score: Tensor) -> Tensor:
    """The neuron [bundles] to split: of the best few, the one whose worse child is best."""
    count = min(search.split.candidates, score.shape[-1])
    top = score.topk(count, dim=-1)
    if count == 1:
        return top.indices[:, 0]
    outlook = torch.stack([_outlook(search, kept, top.indices[:, i]) for i in range(count)], -1)
    outlook = torch.where(top.values > -torch.inf, outlook, -torch.inf)
    return top.indices.gather(-1, outlook.argmax(-1, keepdim=True)).squeeze(-1)


def _outlook(search: _Search, kept: _Bundles, neuron: Tensor) -> Tensor:
    """The bounds that both children would start with, added up; [bundles]."""
    query = search.query
    widths = list(query.network.widths)
    index = neuron.unsqueeze(-1)
    total: Tensor | None = None
    for sign in (-1, 1):
        signs = torch.split(kept.signs.scatter(-1, index, sign), widths, -1)
        bounds = search.bounds.within(signs)
        alpha = torch.split(kept.alpha, widths, -1)
        beta = [
            b * s.unsqueeze(-2)
            for b, s in zip(torch.split(kept.beta, widths, -1), signs, strict=True)
        ]
        rows = search.rows[kept.disjunct]
        least = backward(
            query.network, query.domain, len(widths), rows, bounds.lines(alpha), beta=beta
        ).least.amax(-1)
        total = least.clamp(max=0) if total is None else total + least.clamp(max=0)
    if total is None:
        raise AssertionError("there are two children")
    return total
