"""Leaves of the split search: regions, decided exactly by projections."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.deadline import Deadline
from fgp_vnn.query import Query
from fgp_vnn.regions import Forms, affine_forms, empty
from fgp_vnn.search.outcome import Confirm
from fgp_vnn.search.projections import HalfSpaces, binding, settle
from fgp_vnn.verdict import Counterexample


def decide_regions(
    query: Query, signs: Tensor, disjunct: Tensor, confirm: Confirm, deadline: Deadline
) -> tuple[Counterexample | None, int]:
    """A counterexample in one of the regions, or how many of them could not be settled.

    Each region [regions, neurons] is asked about one disjunct [regions].
    """
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


def region_spaces(query: Query, signs: Tensor, disjunct: Tensor) -> HalfSpaces:
    """The part of each region [regions, neurons] that meets a disjunct [regions]."""
    network, domain = query.network, query.domain
    pattern = torch.split(signs > 0, list(network.widths), -1)
    forms = affine_forms(network, domain, pattern)
    count = len(signs)
    rows, values, errors = [], [], []
    mine = (disjunct.unsqueeze(-1) == query.disjunct).to(network.dtype)  # [regions, outputs]
    weights = [1 - 2 * on.to(network.dtype) for on in pattern]
    for form, weight in zip(forms, [*weights, mine], strict=True):
        columns = form.columns.expand(count, -1, -1).transpose(-1, -2)
        rows.append(columns * weight.unsqueeze(-1))
        values.append(form.values * weight)
        errors.append(form.error * weight.abs())
    spaces = HalfSpaces(torch.cat(rows, 1), torch.cat(values, 1), torch.cat(errors, 1))
    return binding(domain, spaces)
