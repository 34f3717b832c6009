"""Leaves of the split search: regions, decided exactly by projections."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.deadline import Deadline
from fgp_vnn.memory import DEFAULT, parts, regions_at_once
from fgp_vnn.query import Query
from fgp_vnn.regions import Forms, affine_forms, empty
from fgp_vnn.search.outcome import Confirm
from fgp_vnn.search.projections import settle
from fgp_vnn.verdict import Counterexample


def decide_regions(
    query: Query,
    signs: Tensor,
    disjunct: Tensor,
    confirm: Confirm,
    deadline: Deadline,
    *,
    memory: int = DEFAULT,
) -> tuple[Counterexample | None, int]:
    """A counterexample in one of the regions, or how many of them could not be settled.

    Each region [regions, neurons] is asked about one disjunct [regions]; as many at a time as fit
    into `memory` bytes.
    """
    unsettled = 0
    for some in parts(len(signs), regions_at_once(query.network, memory)):
        if deadline.expired():
            return None, unsettled + len(signs) - some.start
        found, left = _decide_some(query, signs[some], disjunct[some], confirm, deadline)
        if found is not None:
            return found, 0
        unsettled += left
    return None, unsettled


def _decide_some(
    query: Query, signs: Tensor, disjunct: Tensor, confirm: Confirm, deadline: Deadline
) -> tuple[Counterexample | None, int]:
    network, domain = query.network, query.domain
    pattern = torch.split(signs > 0, list(network.widths), -1)
    forms = affine_forms(network, domain, pattern)
    hidden = forms[:-1]
    output = Forms(*(part.expand(len(signs), *part.shape[1:]) for part in forms[-1]))
    gone = empty(hidden, pattern).expand(len(signs))
    least = output.values - domain.support(-output.columns.transpose(-1, -2)) - output.error
    shut = query.closed(least).gather(-1, disjunct.unsqueeze(-1)).squeeze(-1)
    unsettled = 0
    for region in torch.nonzero(~gone & ~shut).flatten().tolist():
        if deadline.expired():
            unsettled += 1
            continue
        which = int(disjunct[region])
        found, closed = settle(query, pattern, hidden, output, region, which, confirm)
        if found is not None:
            return found, 0
        unsettled += not closed
    return None, unsettled
