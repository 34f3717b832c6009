"""Exact affine forms of a batch of activation regions.

In a region every z_k is affine: z_k(x) = A_k . (x - c) + v_k, with c the domain's centre. The forms
are propagated forward as columns, with the value v_k as one more column, so that one product
applies a map to all columns of all regions; the ReLUs of a region are a 0/1 diagonal.

A walk computes its forms in another way (`triangular`): by dense matrices, 1.3 to 17 times as fast
(1024 regions, one), with one error for all patterns, which is 7 to 2000 times as large as the
errors of each region here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive, unit
from fgp_vnn.bounds.backward import add_parts
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.model import AffineMap, Network


class MapForms(NamedTuple):
    """The affine forms of one map in each region."""

    columns: Tensor  # [regions or 1, inputs, n_k] the transpose of A_k
    values: Tensor  # [regions or 1, n_k] v_k
    reach: Tensor  # [regions or 1, n_k] h(A_k), to either side: how far z_k moves from v_k
    error: Tensor  # [regions or 1, n_k] upper bound on the rounding error of z_k in the domain
    terms: Tensor  # [regions or 1, n_k] upper bound on the sum of |A_i| |x_i - c_i| and |v_k|


def input_columns(domain: Domain) -> Tensor:
    """The forms of x itself: unit columns and the centre; [1, inputs + 1, inputs]."""
    center = domain.center
    eye = torch.eye(center.shape[-1], dtype=center.dtype, device=center.device)
    return torch.cat([eye, center.unsqueeze(0)]).unsqueeze(0)


def affine_forms(network: Network, domain: Domain, pattern: Sequence[Tensor]) -> list[MapForms]:
    """The forms of z_1, ..., z_K and g in the regions with these on/off patterns [regions, n_k]."""
    if not network.piecewise_linear:
        raise AssertionError("only a piecewise-linear network has regions")
    source = input_columns(domain)
    box = domain.box()
    size = box.sizes.unsqueeze(0)
    columns: list[Tensor] = [source]
    sizes: list[Tensor] = [size]  # |v| + h, to bound the terms of the next map
    errors: list[Tensor] = [torch.zeros_like(size)]
    result: list[MapForms] = []
    for k, affine in enumerate(network.maps):
        forms = _apply(affine, domain, columns, sizes, errors)
        result.append(forms)
        if k < len(network.layers):
            on = pattern[k].to(forms.values.dtype)
            whole = torch.cat([forms.columns, forms.values.unsqueeze(-2)], dim=-2)
            columns.append(whole * on.unsqueeze(-2))
            sizes.append(forms.terms * on)
            errors.append(forms.error * on)
    return result


def _apply(
    affine: AffineMap,
    domain: Domain,
    columns: list[Tensor],
    sizes: list[Tensor],
    errors: list[Tensor],
) -> MapForms:
    """Apply one map to the forms that it reads, with a running bound on the rounding error.

    The sum of a form's terms in the domain is bounded by its outer support. |W| propagates this
    bound and the errors made before. The underflow of a column counts times how far its input
    moves. The roundings of a support, and of the sums it is compared in, are included.
    """
    regions = max(columns[s].shape[0] for s in affine.sources)
    read = [columns[s].expand(regions, -1, -1) for s in affine.sources]
    whole = affine.linear(read)  # [regions, inputs + 1, n_k]
    values = whole[:, -1] + affine.bias
    forms = whole[:, :-1]
    reach = domain.reach(forms.transpose(-1, -2))
    size_of, box = unit(values.dtype), domain.box()
    error = affine.spread([errors[s] for s in affine.sources])
    if affine.defect is not None:
        error = error + affine.defect
    # `spread` is a difference of two sums, each with one rounding per operation.
    error = size_of.grow(affine.operations + 8) * error
    terms = domain.outer_support(forms.transpose(-1, -2)) + values.abs()
    # A matrix that is rounded itself acts on what the sources are, not on their forms alone.
    there = [sizes[s] + errors[s] for s in affine.sources]
    error = error + size_of.share(2 * affine.operations + 8) * affine.magnitude(there)
    error = error + size_of.share(forms.shape[1] + 16) * terms
    moves = 1 + (box.upper - box.lower).sum(-1)
    gone = affine.underflows(there).forward
    error = error + size_of.underflow * (gone + 8) * moves
    # values - values is 0, or NaN where a value overflowed: then the error is NaN too.
    return MapForms(forms, values, reach, error + (values - values), terms)


def empty(forms: Sequence[MapForms], pattern: Sequence[Tensor]) -> Tensor:
    """Which regions [regions] hold no point of the domain because of a single constraint.

    A neuron that is on needs v + h >= 0, and one that is off v - h <= 0.
    """
    result = torch.zeros(1, dtype=torch.bool, device=forms[0].values.device if forms else None)
    for form, on in zip(forms, pattern, strict=False):
        sign = on.to(form.values.dtype) * 2 - 1
        result = result | positive(-(sign * form.values + form.reach + form.error)).any(-1)
    return result


def gradient(network: Network, x: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The outputs [batch, outputs] at x, and the gradient [batch, inputs] of rows . outputs."""
    before = network.preactivations(x)
    return before[-1], pulled_back(network, before, rows)


def pulled_back(network: Network, before: Sequence[Tensor], rows: Tensor) -> Tensor:
    """The gradient [batch, inputs] of rows . outputs at a point with these preactivations."""
    waiting: dict[int, Tensor] = {}
    for k in range(len(network.layers), -1, -1):
        through = rows if k == len(network.layers) else waiting.pop(k + 1, None)
        if through is None:
            continue
        if k < len(network.layers):
            through = network.activations[k].pull(before[k], through)
        affine = network.maps[k]
        add_parts(waiting, affine.sources, affine.adjoint(through))
    return waiting.get(0, rows.new_zeros(len(rows), network.inputs))
