"""Batches of bundles: bounded together, and split at the neuron that promises most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fgp_vnn.bounds.backward import LayerBounds, Rounding, backward
from fgp_vnn.bounds.slopes import Ascended, Multipliers, Rows, ascend, first_slopes
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.model import Network
from fgp_vnn.query import Query
from fgp_vnn.search import neuron_rules
from fgp_vnn.search.rules import find_rule
from fgp_vnn.strategy import Ascent, Neurons

# A split rule: scores [at, neurons] of the neurons of the bundles numbered `at`, the best highest.
Score = Callable[["Setting", "Bounded", Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Setting:
    """What all bundles of a search share."""

    query: Query
    bounds: LayerBounds  # over the whole domain
    rows: Tensor  # [disjuncts, most rows, outputs] unit rows of g, the last one repeated
    coarse: tuple[Network, Domain] | None
    budget: Budget
    ascent: Ascent
    candidates: int  # neurons whose children are looked at before one is chosen
    score: Score  # what tells which neurons these are

    @property
    def widths(self) -> list[int]:
        """The number of neurons in each layer."""
        return list(self.query.network.widths)

    def multipliers(self, bundles: Bundles) -> Multipliers:
        """What an ascent starts from."""
        values = list(self.query.network.value_widths)
        alpha, beta = (
            tuple(part.unsqueeze(-2) for part in torch.split(side, sizes, -1))
            for side, sizes in ((bundles.alpha, values), (bundles.beta, self.widths))
        )
        return Multipliers(alpha, beta, bundles.weights)


@dataclass(frozen=True, eq=False)
class Bundles:
    """A batch of patterns, what each is asked about, and where its bounds start from."""

    disjunct: Tensor  # [bundles]
    signs: Tensor  # [bundles, neurons] int8: -1, +1, 0 for open
    alpha: Tensor  # [bundles, values of all layers]
    beta: Tensor  # [bundles, neurons]
    weights: Tensor  # [bundles, most rows] of the disjunct's rows in the sum that is bounded

    def at(self, index: Tensor) -> Bundles:
        """Some of the bundles."""
        return Bundles(*(part[index] for part in self.parts()))

    def parts(self) -> tuple[Tensor, ...]:
        """All tensors, in the order of the fields."""
        return self.disjunct, self.signs, self.alpha, self.beta, self.weights

    @staticmethod
    def joined(some: Sequence[Bundles]) -> Bundles:
        """Several batches as one."""
        parts = zip(*(bundles.parts() for bundles in some), strict=True)
        return Bundles(*(torch.cat(part) for part in parts))


def set_out(
    query: Query,
    bounds: LayerBounds,
    budget: Budget,
    ascent: Ascent,
    candidates: int,
    rule: str = Neurons.rule,
) -> tuple[Setting, Bundles]:
    """A search's setting and its root: one bundle per disjunct with everything open. The rule is
    one of `neuron_rules`."""
    numbers = [query.rows_of(d) for d in range(query.disjuncts)]
    most = max(len(n) for n in numbers)
    padded = torch.tensor([n + [n[-1]] * (most - len(n)) for n in numbers])
    eye = torch.eye(query.network.outputs, dtype=query.network.dtype)
    rows = eye[padded].to(query.network.device)
    score: Score = find_rule(neuron_rules, rule)
    if query.network.device.type != "cpu":
        ascent = ascent.on_device()
    setting = Setting(query, bounds, rows, query.coarse(), budget, ascent, candidates, score)
    slopes = torch.cat([rows.new_zeros(0), *(slope[0] for slope in first_slopes(bounds))])
    alpha = slopes.expand(len(numbers), -1).contiguous()
    signs = torch.zeros(len(numbers), query.network.neurons, dtype=torch.int8, device=rows.device)
    disjunct = torch.arange(len(numbers), device=rows.device)
    weights = rows.new_full((len(numbers), most), 1 / most)
    return setting, Bundles(
        disjunct, signs, alpha, torch.zeros_like(signs, dtype=alpha.dtype), weights
    )


def rounding_of(setting: Setting) -> Rounding | None:
    """What rounding does to backward passes over the whole domain, and to those of any bundle; None
    where lines of a bundle may be steeper than those of the whole."""
    query = setting.query
    linear = all(activation is RELU for activation in query.network.activations)
    return Rounding(query.network, query.domain, setting.bounds) if linear else None


def halves(bundles: Bundles, neuron: Tensor) -> Bundles:
    """Each bundle twice: first all with their neuron [bundles] off, then all with it on."""
    index = neuron.unsqueeze(-1)
    signs = torch.cat([bundles.signs.scatter(-1, index, sign) for sign in (-1, 1)])
    return replace(Bundles(*(torch.cat([part, part]) for part in bundles.parts())), signs=signs)


@dataclass(frozen=True, eq=False)
class Bounded:
    """A batch of bundles with its bounds."""

    bundles: Bundles  # with the multipliers that were found
    bounds: LayerBounds
    result: Ascended
    crossing: Tensor  # [bundles, neurons] still open and unstable, of those that have signs

    def regions(self, at: Tensor) -> Tensor:
        """The patterns [at, neurons] of the bundles numbered `at`, if nothing in them is open."""
        signs = self.bundles.signs[at]
        lowers = (lo.expand(len(self.crossing), -1)[at] for lo in self.bounds.lower)
        lower = torch.cat([self.bundles.alpha[at, :0], *lowers], -1)
        stable = torch.where(lower >= 0, 1, -1).to(torch.int8)
        return torch.where(signs == 0, stable, signs)


def bound(setting: Setting, bundles: Bundles, rounding: Rounding | None = None) -> Bounded:
    """Optimised bounds of each bundle's rows; `rounding` is that of the whole domain, if it is
    there."""
    query, widths = setting.query, setting.widths
    signs = torch.split(bundles.signs, widths, -1)
    bounds = setting.bounds.within(signs)
    rows = setting.rows[bundles.disjunct]
    result = ascend(
        Rows(query.network, query.domain, len(widths), rows, bounds, signs, rounding),
        begin=setting.multipliers(bundles),
        coarse=setting.coarse,
        ascent=_for_depth(setting.ascent, bundles),
        done=lambda least: setting.budget.expired(),
    )
    alpha, beta, weights = result.multipliers
    found = replace(
        bundles,
        alpha=torch.cat([bundles.alpha[:, :0], *(a.squeeze(-2) for a in alpha)], -1),
        beta=torch.cat([bundles.beta[:, :0], *(b.squeeze(-2) for b in beta)], -1),
        weights=bundles.weights if weights is None else weights,
    )
    none = torch.zeros_like(bundles.signs[:, :0], dtype=torch.bool)
    pairs = zip(bounds.unstable(), bounds.activations, strict=True)
    kinds = (mask if f is RELU else torch.zeros_like(mask) for mask, f in pairs)
    masks = (mask.expand(len(none), -1) for mask in kinds)
    crossing = torch.cat([none, *masks], -1)
    return Bounded(found, bounds, result, crossing)


def _for_depth(ascent: Ascent, bundles: Bundles) -> Ascent:
    """An ascent with the fewer steps, the fewer neurons are closed: multipliers matter where many
    are, and elsewhere bundles are split soon anyway."""
    if not ascent.looks or ascent.steps <= ascent.few or not bundles.signs.numel():
        return ascent
    part = float(bundles.signs.count_nonzero()) / bundles.signs.numel()
    more = (ascent.steps - ascent.few) * min(1.0, part / ascent.many)
    return replace(ascent, steps=ascent.few + round(more))


def choose(setting: Setting, bounded: Bounded, at: Tensor) -> Tensor:
    """The neuron to split in each of the bundles numbered `at`: of those with the best scores, the
    one whose children start with the best bounds."""
    kept = bounded.bundles.at(at)
    # What overflows is still preferred to a neuron that is not open.
    gains = setting.score(setting, bounded, at).nan_to_num()
    score = torch.where(bounded.crossing[at], gains, -torch.inf)
    count = min(setting.candidates, score.shape[-1])
    top = score.topk(count, dim=-1)
    if count == 1:
        return top.indices[:, 0]
    outlook = torch.stack([_outlook(setting, kept, top.indices[:, i]) for i in range(count)], -1)
    outlook = torch.where(top.values > -torch.inf, outlook.nan_to_num(), -torch.inf)
    return top.indices.gather(-1, outlook.argmax(-1, keepdim=True)).squeeze(-1)


def _outlook(setting: Setting, bundles: Bundles, neuron: Tensor) -> Tensor:
    """The bounds that both children would start with, as far as negative, added up; [bundles].

    A choice between neurons needs no proof, so the lower precision is enough.
    """
    network, domain = setting.coarse or (setting.query.network, setting.query.domain)
    widths, dtype = setting.widths, network.dtype
    children = halves(bundles, neuron)
    signs = torch.split(children.signs, widths, -1)
    begin = setting.multipliers(children).to(dtype)
    beta = [b * s.unsqueeze(-2) for b, s in zip(begin.beta, signs, strict=True)]
    lines = setting.bounds.to(dtype).within(signs).lines(begin.alpha)
    rows = begin.mix(setting.rows[children.disjunct].to(dtype))
    passed = backward(network, domain, len(widths), rows, lines, beta=beta)
    return passed.least.squeeze(-1).clamp(max=0).view(2, -1).sum(0)
