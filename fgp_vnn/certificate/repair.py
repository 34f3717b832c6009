"""Repairs trees of boxes so that the checker accepts them.

The verifier's bounds of a box differ a little from the checker's: it knows more from the enclosing
boxes, and has other intervals. Leaves that the verifier closed but the checker cannot are split
further here, with the checker's own bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.certificate.checker.bounds import Enclosure
from fgp_vnn.certificate.checker.check import BATCH, box_bounds
from fgp_vnn.certificate.checker.forms import Array
from fgp_vnn.certificate.checker.network import CheckedNetwork
from fgp_vnn.certificate.checker.proof import ProofStep
from fgp_vnn.certificate.checker.trees import LEAF, box_levels
from fgp_vnn.certificate.checker.unsafe import Unsafe
from fgp_vnn.property.model import Case

MARGIN = 1e-9  # bounds should exceed this, not just 0: another processor may round differently


def repair_boxes(
    network: CheckedNetwork, case: Case, step: ProofStep, watch: Callable[[], None]
) -> ProofStep:
    """The step with leaves split until the checker closes each; `watch` may raise to stop."""
    wanted = np.ones(int((step.arrays["tree"] == LEAF).sum()), dtype=bool)
    for turn in count():
        failed = []
        for leaf, bound in box_bounds(network, case, step, wanted):
            failed += leaf[~(bound.min(-1) > MARGIN)].tolist()
            watch()
        if not failed:
            break
        step, wanted = _split(network, case, step, sorted(failed), by_width=turn % 2 == 1)
    return step


def _split(
    network: CheckedNetwork, case: Case, step: ProofStep, failed: list[int], *, by_width: bool
) -> tuple[ProofStep, NDArray[np.bool_]]:
    """The step with the leaves `failed` halved, and a mask of its new leaves [leaves]."""
    lower, upper = _boxes(case, step, failed)
    weights = step.arrays["weights"]
    best = _best_halves(network, case, step, lower, upper, weights[failed], by_width=by_width)
    halves = dict(zip(failed, zip(*best, strict=True), strict=True))
    nodes: list[int] = []
    cuts: list[float] = []
    kept: list[Array] = []  # the weights of each leaf
    fresh: list[bool] = []
    old_cuts = iter(step.arrays["cuts"].tolist())
    leaf = -1
    for node in step.arrays["tree"].tolist():
        if node != LEAF:
            nodes.append(node)
            cuts.append(next(old_cuts))
            continue
        leaf += 1
        if leaf in halves:
            side, middle, left, right = halves[leaf]
            nodes += [int(side), LEAF, LEAF]
            cuts.append(float(middle))
            kept += [left, right]
            fresh += [True, True]
        else:
            nodes.append(LEAF)
            kept.append(weights[leaf])
            fresh.append(False)
    arrays = {
        "tree": np.array(nodes, dtype=np.int32),
        "cuts": np.array(cuts),
        "weights": np.array(kept, dtype=np.float32),
    }
    return replace(step, arrays=step.arrays | arrays), np.array(fresh)


def _boxes(case: Case, step: ProofStep, leaves: list[int]) -> tuple[Array, Array]:
    """Lower and upper corners [leaves, inputs] of the boxes of some leaves."""
    found: dict[int, tuple[Array, Array]] = {}
    for level in box_levels(step.arrays["tree"], step.arrays["cuts"], case.lower, case.upper):
        for i in np.flatnonzero(np.isin(level.leaf, leaves)):
            found[int(level.leaf[i])] = level.lower[i], level.upper[i]
    lower, upper = zip(*(found[leaf] for leaf in leaves), strict=True)
    return np.stack(lower), np.stack(upper)


def _best_halves(
    network: CheckedNetwork,
    case: Case,
    step: ProofStep,
    lower: Array,
    upper: Array,
    weights: Array,
    *,
    by_width: bool,
) -> tuple[NDArray[np.int64], Array, Array, Array]:
    """For each box, the input [boxes] along which halving gives the best bounds, the cut [boxes],
    and the weights [boxes, rows] for either half.

    With `by_width`, every second turn, it is the widest input: so all sides shrink, and in the end
    every box is closed.
    """
    boxes, every = len(lower), np.arange(len(lower))
    middle = (lower + upper) / 2
    able = (lower < middle) & (middle < upper)
    if not able.any(-1).all():
        raise LookupError("boxes are too small to be split further")
    width = (upper - lower) / np.maximum(case.upper - case.lower, 1e-300)
    side = np.where(able, width, -np.inf).argmax(-1)
    tried = [side] if by_width else [np.full(boxes, n) for n in np.flatnonzero(able.any(0))]
    outlook, found = np.full(boxes, -np.inf), np.concatenate([weights, weights])
    for number in tried:
        left, right = upper.copy(), lower.copy()
        left[every, number] = right[every, number] = middle[every, number]
        halves = np.concatenate([lower, right]), np.concatenate([left, upper])
        bound, chosen = _weigh(network, case, step, *halves, np.concatenate([weights, weights]))
        worse = np.minimum(bound[:boxes], bound[boxes:])
        better = able[every, number] & (worse > outlook)
        outlook, side = np.where(better, worse, outlook), np.where(better, number, side)
        found = np.where(np.tile(better, 2)[:, None], chosen, found)
    return side, middle[every, side], found[:boxes], found[boxes:]


def _weigh(
    network: CheckedNetwork, case: Case, step: ProofStep, lower: Array, upper: Array, weights: Array
) -> tuple[Array, Array]:
    """The best bounds [boxes] and their weights [boxes, rows]. For each disjunct, the given
    weighted sum and each single row are tried; the bound is the lowest over the disjuncts."""
    unsafe, disjuncts = Unsafe(case), step.arrays["disjuncts"]
    rows = len(unsafe.limits)
    given = unsafe.mixed(weights, disjuncts[None])  # [boxes, disjuncts, rows]
    given /= np.maximum(given.sum(-1, keepdims=True), 1e-30)
    single = np.broadcast_to(np.eye(rows), (len(lower), rows, rows))
    sums = np.concatenate([given, single], axis=1)
    parts = [slice(begin, begin + BATCH) for begin in range(0, len(lower), BATCH)]
    bounds = np.concatenate(
        [unsafe.least(Enclosure(network, lower[p], upper[p]), sums[p]) for p in parts]
    )
    worst, chosen = np.full(len(lower), np.inf), np.zeros(weights.shape)
    for i, disjunct in enumerate(disjuncts):
        candidates = np.array([i, *(len(disjuncts) + np.flatnonzero(unsafe.owner == disjunct))])
        best = candidates[bounds[:, candidates].argmax(-1)]
        every = np.arange(len(lower))
        worst = np.minimum(worst, bounds[every, best])
        chosen += sums[every, best]
    return worst, chosen
